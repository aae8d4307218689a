"""The images that the project's Dockerfiles make: what is in them, and that they come out the same again."""

import os
import runpy
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import forked_mxjob
import pytest
import yaml
from deployment import locked
from kubernetes_programs import MissingProgramError
from node_world import had_or_refused
from packaging.utils import canonicalize_name
from real_node.images import (
    DIGITS,
    IMAGE_CLASSIFICATION,
    LINEAR,
    MXNET,
    MXNET_CUDA,
    OPERATOR,
    PYTHON,
    ROOT,
    SEEDS,
    TUNE,
    TVM,
    Image,
    archives,
    identity,
    run,
    run_of_folder,
)
from real_node.node import why_not
from waiting import SECONDS

from mxnet_operator.local.images.environment import installed_interpreter
from mxnet_operator.local.images.lock import read_lock

BASES = [MXNET, TVM, *([MXNET_CUDA] if "MXJOB_GPU_IMAGE" in os.environ else [])]
EXAMPLES = [DIGITS, IMAGE_CLASSIFICATION, TUNE, SEEDS, LINEAR]
OF_THE_NODE = [DIGITS, TUNE, OPERATOR]
PACKAGES = "dpkg-query --show --showformat='${Package} ${Version}\\n'"
DISTRIBUTIONS = "import importlib.metadata as m; [print(d.name, d.version) for d in m.distributions()]"
pytestmark = pytest.mark.node(TUNE)


def label(image: Image) -> str:
    return image.name.removeprefix("docker.io/").removeprefix("library/")


def had(make: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of `real_node.images` returns; skips the test where images can't be built."""
    with had_or_refused():
        if reason := why_not():
            raise MissingProgramError(reason)
        return make(*arguments)


@pytest.fixture(scope="module", params=OF_THE_NODE, ids=label)
def archive(request):
    """The archive of an image that the node has: one on each base, and the operator's."""
    return had(archives, [request.param])[0]


@pytest.fixture(scope="module")
def bill():
    return runpy.run_path(str(ROOT / "tools" / "image_sbom.py"))["bill"]


@pytest.fixture(scope="module")
def documented():
    """What images.yaml says of each image: its size in MiB, and its ID where that is there."""
    images = yaml.safe_load((ROOT / "tests" / "node" / "images.yaml").read_text())
    return {name: (int(each["mib"]), str(each["id"])) for name, each in images.items()}


def lock_of(image):
    """Version by name of each distribution that an image's lock has."""
    if image is OPERATOR:
        return {name: str(version) for name, version in locked("controller.txt").items()}
    base = image.parents[-1]
    pins = read_lock(base.dockerfile.with_name(base.dockerfile.name.replace(".Dockerfile", ".txt"))).pins
    return {str(canonicalize_name(name)): version for name, version in pins.items()}


def test_its_bill_of_materials_lists_what_dpkg_and_python_say_in_a_container(archive, bill):
    purls = [each["purl"].partition("?")[0] for each in bill(archive.path)["components"]]
    ask = f"{PACKAGES}; for python in python /usr/bin/python3; do echo; $python -c '{DISTRIBUTIONS}'; done"
    packages, *distributions = had(run, archive.image, "sh", "-c", ask).split("\n\n")
    found = {
        f"pkg:deb/debian/{quote(name, safe='')}@{quote(version, safe='')}"
        for name, version in map(str.split, packages.splitlines())
    }
    for name, version in (line.split() for of_python in distributions for line in of_python.splitlines()):
        found.add(f"pkg:pypi/{canonicalize_name(name)}@{quote(version, safe='')}")
    assert set(purls) == found
    assert {f"pkg:pypi/{name}@{version}" for name, version in lock_of(archive.image).items()} <= found


def test_its_size_is_that_of_the_documentation(archive, documented):
    size, _ = documented[label(archive.image)]
    assert abs(archive.mebibytes - size) <= size / 50


def test_the_ids_are_those_of_the_documentation(documented):
    """On the base that the documentation names: on one of later packages of Debian they are others."""
    _, base = documented["python:3.11-slim-bookworm"]
    if had(identity, PYTHON).startswith(base):
        ids = {label(each): had(identity, each)[:12] for each in (*BASES, *EXAMPLES)}
        assert ids == {name: documented[name][1] for name in ids}


@pytest.mark.parametrize("image", EXAMPLES, ids=label)
def test_an_example_has_its_scripts_and_nothing_beside_them(image):
    command = ["git", "ls-files", "--", str(image.context)]
    tracked = subprocess.run(command, cwd=image.context, capture_output=True, text=True, check=True).stdout
    assert set(had(run, image, "ls", "-A").split()) == {name for name in tracked.split() if name.endswith(".py")}


@pytest.mark.parametrize("image", [DIGITS, OPERATOR], ids=label)
def test_an_image_built_again_from_nothing_is_the_same_to_the_byte(image):
    assert had(identity, image, "--no-cache") == had(identity, image)


@pytest.mark.parametrize(
    ("options", "python", "packages", "says"),
    [
        (["--as-of", "2019-12-01"], "3.7", "pandas\ngluonnlp\n", "1.5.1 0.25.3\n"),
        (["--mxnet", "1.1.0"], "3.6", "pandas\n", "1.1.0 0.23.0\n"),
        (["--mxnet", "1.0.0"], "3.6", "pandas\n", "1.0.0 0.22.0\n"),
    ],
)
def test_the_dockerfile_that_init_writes_for_a_day_is_built_and_its_command_runs(
    tmp_path, options, python, packages, says
):
    interpreter = installed_interpreter(python)
    if interpreter is None and not os.environ.get("CI"):
        pytest.skip(f"Python {python} isn't on this machine")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("import mxnet, pandas; print(mxnet.__version__, pandas.__version__)\n")
    (folder / "requirements.txt").write_text(packages)
    environment = {**os.environ, "MXJOB_HOME": str(tmp_path / "home")}
    done = forked_mxjob.run(["init", str(folder / "train.py"), *options], environment, None, SECONDS)
    assert done.returncode == 0, done.stderr
    assert had(run_of_folder, folder, python, interpreter) == says
