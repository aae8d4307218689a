"""Images of a day, resolved by the real index: packages of that day, and what is said where they can't be had."""

import functools
import http.server
import os
import re
import shutil
import threading
import zipfile

import forked_mxjob
import pytest
from waiting import SECONDS

from mxnet_operator.cli.running.images import EnvironmentOptions
from mxnet_operator.local.images.day import Wanted, parse_day
from mxnet_operator.local.images.environment import find_interpreter, installed_interpreter
from mxnet_operator.local.images.snapshot import take_snapshot
from mxnet_operator.local.images.store import BASE_IMAGE, ImageStore
from mxnet_operator.local.images.uv_process import BuildError, ImageError

OF_2019 = "mxjob/mxnet:1.5.1-py3.7-2019-12-01"
OF_2018 = "mxjob/mxnet:1.1.0-py3.6-2018-04-10"


@pytest.fixture
def store(tmp_path):
    for python in ("3.6", "3.7"):
        if installed_interpreter(python) is None and not os.environ.get("CI"):
            pytest.skip(f"Python {python} isn't on this machine")
    return ImageStore(tmp_path / "home")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "train.py").write_text("import mxnet\n")
    return folder


async def test_packages_are_those_of_the_day_and_their_lock_is_kept(store, folder):
    (folder / "requirements.txt").write_text("mxnet-cu90>=1.5  # the image's fulfils it\ngluonnlp\n")
    lock = await store.lock_of(folder, ["pandas"], OF_2019)
    assert (lock.python, str(lock.day)) == ("3.7", "2019-12-01")
    of_the_day = {"mxnet": "1.5.1.post0", "numpy": "1.17.4", "pandas": "0.25.3", "gluonnlp": "0.8.1"}
    assert lock.pins.items() >= of_the_day.items()
    assert lock.pins.keys() >= {"scipy", "scikit-learn", "requests", "graphviz"}
    assert "mxnet-cu90" not in lock.pins
    image = store.add_snapshot(take_snapshot(folder), "script", OF_2019, ["pandas"])
    assert store.lock_file(image).read_text() == lock.text


@pytest.mark.exhaustive
async def test_pandas_whose_requirements_uv_can_not_read_is_resolved_in_the_folder_of_a_project(
    store, folder, tmp_path
):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\nversion = "1"\n')
    lock = await store.lock_of(folder, ["pandas"], OF_2018)
    assert (lock.pins["mxnet"], lock.pins["pandas"]) == ("1.1.0.post0", "0.22.0")


async def test_a_package_of_a_later_day_is_refused_with_its_day(store, folder):
    for asked, says in (
        ("pandas==1.1.0", "The pandas that is asked for was uploaded after 2019-12-01: --as-of 2020-07-28; or"),
        ("numpy>=1.19", "A later day is --as-of; or ask for versions that fit in --pip"),
        ("mxnet==1.6.0", "ask for mxnet==1.6.0, and mxjob/mxnet:1.5.1-py3.7-2019-12-01 has MXNet 1.5.1"),
    ):
        with pytest.raises(BuildError) as refused:
            await store.lock_of(folder, [asked], OF_2019)
        assert says in str(refused.value), asked
        assert "exclude-newer-package" not in str(refused.value)
    (folder / "requirements.txt").write_text("numpy>=1.19\n")
    image = store.add_snapshot(take_snapshot(folder), "script", OF_2019, [])
    with pytest.raises(BuildError, match=r"that fit in requirements\.txt, or"):  # not in the snapshot's
        await store.ensure(image)


@pytest.mark.exhaustive
async def test_mxnet_0_12_is_imported_with_the_libgfortran_of_numpy(store):
    ready = await store.ensure(store.resolve("mxjob/mxnet:0.12.1-py3.6"))
    assert ready.library_path.endswith("/lib")


@pytest.mark.exhaustive
async def test_the_mxnet_for_gpus_of_each_year_is_resolved(store, folder):
    for day, name, version in (
        ("2017-06", "mxnet-cu80", "0.10.0.post2"),
        ("2018-06", "mxnet-cu92", "1.2.0"),
        ("2019-06", "mxnet-cu101", "1.4.1"),
        ("2020-06", "mxnet-cu102", "1.6.0.post0"),
        ("2021-06", "mxnet-cu112", "1.8.0.post0"),
    ):
        base, _ = store.choose_base(folder, [], Wanted(parse_day(day), gpus=True))
        assert (await store.lock_of(folder, [], base)).pins[name] == version


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder as an index, which has names of files and no times."""

    def log_message(self, *_):
        pass


@pytest.fixture
def index_without_times(tmp_path):
    """The URL of an index with MXNet, and with a package that only it has."""
    mxnet, mine = tmp_path / "index" / "mxnet", tmp_path / "index" / "mine"
    mxnet.mkdir(parents=True)
    mine.mkdir()
    (mxnet / "mxnet-1.5.1-py2.py3-none-manylinux1_x86_64.whl").touch()
    with zipfile.ZipFile(mine / "mine-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("mine-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        wheel.writestr("mine-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("mine-1.0.dist-info/RECORD", "")
    handler = functools.partial(Quiet, directory=str(tmp_path / "index"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def test_an_index_without_upload_times_is_said_with_what_works(
    store, folder, index_without_times, tmp_path, monkeypatch
):
    lacks = "The index doesn't say when {} was uploaded, which a day needs: take it from PyPI"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with monkeypatch.context() as only_this:
        only_this.setenv("UV_DEFAULT_INDEX", index_without_times)
        with pytest.raises(BuildError, match=lacks.format("mxnet")):
            await store.lock_of(folder, [], OF_2019)
    # Beside PyPI, as an index of a team's own packages.
    shutil.rmtree(tmp_path / "index" / "mxnet")
    monkeypatch.setenv("UV_INDEX", index_without_times)
    with pytest.raises(BuildError, match=lacks.format("mine")) as refused:
        await store.lock_of(folder, ["mine"], OF_2019)
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "uv.toml").write_text(re.findall("`(exclude-newer-package.*?)`", str(refused.value))[0])
    lock = await store.lock_of(folder, ["mine"], OF_2019)
    assert (lock.pins["mine"], lock.pins["numpy"]) == ("1.0", "1.17.4")


async def test_a_python_that_is_nowhere_is_said_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    for python, variables, says in (
        ("3.7", {}, "isn't on this machine, and uv downloads 3.8 and newer only. Install it (pyenv install 3.7,"),
        ("3.9", {"UV_PYTHON_DOWNLOADS": "never"}, "`python3.9` is on PATH (apt, dnf, pyenv and conda have it):"),
        ("3.9", {"UV_OFFLINE": "1"}, "uv is set to stay offline"),
        (
            "3.9",
            {"UV_PYTHON_INSTALL_MIRROR": "http://127.0.0.1:9", "UV_HTTP_RETRIES": "0"},
            "uv's downloads of Python, on GitHub, can't be",
        ),
    ):
        with monkeypatch.context() as changed:
            for name, value in {**variables, "UV_PYTHON_INSTALL_DIR": str(tmp_path / "pythons")}.items():
                changed.setenv(name, value)
            with pytest.raises(ImageError) as refused:
                await find_interpreter(python, tmp_path)
        assert says in str(refused.value), variables


def test_a_requirement_of_another_mxnet_chooses_the_image(store, folder):
    for line, base in (
        ("mxnet-cu90mkl==1.5.0", "mxjob/mxnet:1.5.0-py3.7-2019-09-29"),
        ("mxnet<1.2", "mxjob/mxnet:1.1.0-py3.6-2018-05-20"),
        ("mxnet>=1.5", BASE_IMAGE),
        ("mxnet-mkl", BASE_IMAGE),
    ):
        (folder / "requirements.txt").write_text(f"six\n{line}\n")
        assert store.add("mine", folder).base == base, line
        assert store.resolve("mine").base == base


@pytest.mark.exhaustive
def test_the_newest_packages_of_a_day_choose_its_mxnet_unless_the_user_does(store, folder):
    for given, packages, base in (
        (EnvironmentOptions("2019-08-27"), ["gluonts"], "mxjob/mxnet:1.4.1-py3.7-2019-08-27"),
        (EnvironmentOptions("2019-08-27"), ["six"], "mxjob/mxnet:1.5.0-py3.7-2019-08-27"),
        (EnvironmentOptions("2019-08-27"), ["gluonts", "six==99"], "mxjob/mxnet:1.5.0-py3.7-2019-08-27"),
        (EnvironmentOptions("2019-08-27"), ["gluonts", "mxnet<1.5.1"], "mxjob/mxnet:1.5.0-py3.7-2019-08-27"),
        (EnvironmentOptions("2019-08-27", mxnet="1.5"), ["gluonts"], "mxjob/mxnet:1.5.0-py3.7-2019-08-27"),
    ):
        assert given.base(store, folder, packages) == base, (given, packages)
    (folder / "requirements.txt").write_text("gluonts\n")
    assert EnvironmentOptions("2019-08-27", "3.6").base(store, folder) == "mxjob/mxnet:1.4.1-py3.6-2019-08-27"


def test_init_writes_a_dockerfile_of_the_day_with_its_lock(store, folder, tmp_path):
    def mxjob(*words):
        done = forked_mxjob.run(words, {**os.environ, "MXJOB_HOME": str(tmp_path / "home")}, None, SECONDS)
        assert done.returncode == 0, done.stderr
        return done

    done = mxjob("init", str(folder / "train.py"), "--as-of", "2019-12-01")
    assert done.stderr.count("MXNet 1.5.1, Python 3.7, packages as of 2019-12-01\n") == 1
    file = (folder / "Dockerfile").read_text()
    assert "\nFROM python:3.7-slim-bookworm\n" in file
    assert "\nRUN pip install --no-cache-dir --require-hashes -r requirements.lock\n" in file
    lock = (folder / "requirements.lock").read_text()
    assert lock.startswith("# python: 3.7\n# as of: 2019-12-01\n")
    assert "\nmxnet==1.5.1.post0 \\\n    --hash=sha256:" in lock
    assert f"; the image has the packages of {OF_2019}.\n" in (folder / "mxjob.yaml").read_text()
    assert mxjob("local", "image", "show", "script:1.0").stdout == lock
