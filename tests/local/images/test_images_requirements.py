"""Packages added to a base image by plain requirements: locked with its pins, or refused with the pin in the way."""

import re

import pytest

from mxnet_operator.local.images.lock import read_lock
from mxnet_operator.local.images.requirements import read_plain
from mxnet_operator.local.images.snapshot import take_snapshot
from mxnet_operator.local.images.store import BASE_IMAGE, GPU_IMAGE, ImageStore
from mxnet_operator.local.images.uv_process import BuildError, Ended, ImageError, build_error


@pytest.fixture
def store(tmp_path):
    return ImageStore(tmp_path / "home")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "train.py").write_text("import mxnet, six\n")
    return folder


def pins(tmp_path):
    """What is installed in each environment that is complete."""
    marks = (tmp_path / "home" / "images").glob("*/complete.json")
    return [read_lock(mark.with_name("requirements.txt")).pins for mark in marks]


async def test_requirements_and_packages_are_added_to_those_of_the_base(store, folder, tmp_path, mxnet_python):
    (folder / "requirements.txt").write_text("mxnet>=1.5  # the image has it\nsix\n")
    image = store.add_snapshot(take_snapshot(folder), "script", BASE_IMAGE, ["tabulate"])
    assert not store.ready(image)
    await store.ensure(image)
    assert store.ready(image)
    (found,) = pins(tmp_path)
    assert (found["mxnet"], found["numpy"]) == ("1.9.1", "1.23.5")
    assert found.keys() >= {"six", "tabulate", "scipy"}


@pytest.mark.parametrize("asked", ["numpy>=1.24", "pandas>=3"])
async def test_a_conflict_fails_for_good_and_names_the_pin_that_causes_it(store, folder, mxnet_python, asked):
    (folder / "requirements.txt").write_text(f"{asked}\n")
    image = store.add("digits", folder)
    with pytest.raises(BuildError) as refused:
        await store.ensure(image)
    assert "mxjob/mxnet:1.9.1 needs numpy 1.23.5, the newest that MXNet 1.9.1" in str(refused.value)
    assert asked in str(refused.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("-r other.txt", "is an option"),
        ("--index-url https://index.invalid/simple", "UV_DEFAULT_INDEX"),
        ("git+https://example.invalid/a.git", "isn't a package of an index"),
        ("./wheels/a.whl", "isn't a package of an index"),
        ("mxnet==latest", "is no version of MXNet"),
    ],
)
def test_a_line_that_can_t_be_added_is_refused_where_the_image_is_added(store, folder, line, says):
    (folder / "requirements.txt").write_text(f"six\n{line}\n")
    with pytest.raises(ImageError, match=says):
        store.add("digits", folder)
    with pytest.raises(ImageError, match=says):
        store.add("digits", folder, BASE_IMAGE)
    (folder / "requirements.txt").unlink()
    with pytest.raises(ImageError, match=says):
        store.add_snapshot(take_snapshot(folder), "script", BASE_IMAGE, [line])


def test_a_module_in_place_of_its_project_means_the_project(folder):
    listed = "PIL\ncv2>=3\nskimage==0.18 # old\nyamllint\npil-kit\npickle\ncollections # Python's own\n"
    listed += "sklearn==0.0.post1\nsklearn>=0.20\ntqdm @ file:///tmp/build/80754af9/tqdm_16159/work\nopencv\n"
    listed += "pkg-resources==0.0.0\n pkg_resources == 0.0.0 # of Ubuntu\n"
    (folder / "requirements.txt").write_text(listed)
    named = [line for line, _ in read_plain(folder / "requirements.txt").lines]
    assert named[:5] == ["Pillow", "opencv-python-headless>=3", "scikit-image==0.18", "yamllint", "pil-kit"]
    assert named[5:] == ["scikit-learn", "scikit-learn>=0.20", "tqdm", "opencv-python-headless"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_requirements_of_windows_are_read_as_pip_reads_them(store, folder, encoding):
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    (folder / "requirements.txt").write_bytes(f"{mark}six\r\ntqdm # bars\r\n".encode(encoding))
    assert [line for line, _ in read_plain(folder / "requirements.txt").lines] == ["six", "tqdm"]
    (folder / "requirements.txt").write_bytes(
        f"{mark}# python: 3.11\r\nsix==1.17.0 --hash=sha256:00\r\n".encode(encoding)
    )
    assert read_lock(folder / "requirements.txt").pins == {"six": "1.17.0"}


def test_refused_requirements_are_named_by_the_user_s_path_and_leave_no_copy(store, folder, tmp_path):
    (folder / "requirements.txt").write_text("six\n-r other.txt\n")
    with pytest.raises(ImageError, match=re.escape(str(folder / "requirements.txt"))):
        store.add_snapshot(take_snapshot(folder), "script", BASE_IMAGE, [])
    assert not (tmp_path / "home" / "snapshots").exists()


def test_the_mxnet_of_a_gpu_image_fulfils_a_requirement_of_mxnet(store, folder):
    (folder / "requirements.txt").write_text("mxnet\n")
    image = store.add_snapshot(take_snapshot(folder), "script", GPU_IMAGE, [])
    asked = store._packages(image)._input.splitlines()
    assert "mxnet-cu112==1.9.1" in asked
    assert "mxnet" not in asked


def test_a_locked_requirements_file_is_the_whole_of_a_snapshot_s_packages(store, folder):
    (folder / "requirements.txt").write_text("# python: 3.11\nsix==1.17.0 --hash=sha256:00\n")
    assert store.add_snapshot(take_snapshot(folder), "script", GPU_IMAGE, []).base is None


async def test_packages_that_can_not_be_fetched_now_are_tried_again(store, folder, mxnet_python, monkeypatch):
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(folder.parent / "cache"))
    (folder / "requirements.txt").write_text("six\n")
    with pytest.raises(ImageError, match="uv is set to stay offline") as refused:
        await store.ensure(store.add("digits", folder))
    assert not isinstance(refused.value, BuildError)


def test_a_proxy_that_may_not_run_is_named_without_its_password(tmp_path, monkeypatch):
    ended = Ended(2, ("error: client error (Connect)", "Connection refused (os error 111)"))
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.example:3128")
    said = str(build_error("The packages can't be installed", ended, tmp_path))
    assert "through the proxy of HTTPS_PROXY, http://proxy.example:3128 (is it running?)" in said
    assert "secret" not in said
    for name in ("HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert "The package index can't be reached. uv" in str(build_error("x", ended, tmp_path))
