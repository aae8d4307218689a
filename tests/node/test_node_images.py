"""The images that the project's Dockerfiles make: what is in them, and that they come out the same again."""

import json
import os
import re
import runpy
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from deployment import locked
from kubernetes_programs import MissingProgramError, building
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
    Archive,
    Image,
    archives,
    build,
    export,
    identity,
    run,
)
from real_node.node import why_not
from real_node_fixtures import had_or_refused

from mxnet_operator.local.images.lock import read_lock

BASES = [MXNET, TVM, *([MXNET_CUDA] if "MXJOB_GPU_IMAGE" in os.environ else [])]
EXAMPLES = [DIGITS, IMAGE_CLASSIFICATION, TUNE, SEEDS, LINEAR]
OF_THE_NODE = {DIGITS, TUNE, OPERATOR}
DISTRIBUTIONS = (
    "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
)
pytestmark = pytest.mark.node(TUNE)


def label(image: Image) -> str:
    return image.name.removeprefix("docker.io/").removeprefix("library/")


def had(make: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of `real_node.images` returns; skips the test where images can't be built."""
    with had_or_refused():
        if reason := why_not():
            raise MissingProgramError(reason)
        return make(*arguments)


@pytest.fixture(scope="module", params=[*BASES, *EXAMPLES, OPERATOR], ids=label)
def archive(request, tmp_path_factory):
    """The archive of an image; of one that the node has no use for it goes after the tests of that image."""
    if request.param in OF_THE_NODE:
        yield had(archives, [request.param])[0]
        return
    path = tmp_path_factory.mktemp("image") / "image.tar"
    with building("images"):
        had(build, request.param)
        had(export, request.param, path)
    yield Archive(request.param, path)
    path.unlink()


@pytest.fixture(scope="module")
def bill():
    return runpy.run_path(str(ROOT / "tools" / "image_sbom.py"))["bill"]


@pytest.fixture(scope="module")
def documented():
    """What docs/tests.md says of each image: its size in MiB, and its ID where that is there."""
    rows = re.findall(
        r"^\| `(\S+)`.* \| (\d+) \| (?:`(\w{12})`)?", (ROOT / "docs" / "tests.md").read_text(), re.MULTILINE
    )
    return {name: (int(size), identifier) for name, size, identifier in rows}


def lock_of(image):
    """Version by name of each distribution that an image's lock has."""
    if image is OPERATOR:
        return {name: str(version) for name, version in locked("controller.txt").items()}
    base = image if image in BASES else image.parents[-1]
    pins = read_lock(base.dockerfile.with_name(base.dockerfile.name.replace(".Dockerfile", ".txt"))).pins
    return {str(canonicalize_name(name)): version for name, version in pins.items()}


def test_it_says_what_it_is_and_runs_as_nobody_unless_others_are_made_from_it(archive):
    config = archive.config()["config"]
    assert config.get("User", "") == ("" if archive.image in BASES else "65532:65532")
    said = {name.rpartition(".")[2]: text for name, text in config["Labels"].items()}
    assert said["licenses"] == "Apache-2.0"
    assert said["title"]
    assert archive.image not in EXAMPLES or (said["title"] not in {"mxnet", "tvm"} and said["version"] == "1.0")


def test_its_bill_of_materials_lists_what_dpkg_and_python_say_in_a_container(archive, bill):
    purls = [each["purl"].partition("?")[0] for each in bill(archive.path)["components"]]
    packages = had(run, archive.image, "dpkg-query", "--show", "--showformat=${Package} ${Version}\\n").splitlines()
    found = {
        f"pkg:deb/debian/{quote(name, safe='')}@{quote(version, safe='')}" for name, version in map(str.split, packages)
    }
    for python in ("python", "/usr/bin/python3"):
        distributions = json.loads(had(run, archive.image, python, "-c", DISTRIBUTIONS))
        found |= {
            f"pkg:pypi/{canonicalize_name(name)}@{quote(version, safe='')}" for name, version in distributions.items()
        }
    assert set(purls) == found
    assert {f"pkg:pypi/{name}@{version}" for name, version in lock_of(archive.image).items()} <= found


def test_its_size_and_id_are_those_of_the_documentation(archive, documented):
    """The ID on the base that the documentation names: on one of later packages of Debian it is another."""
    size, identifier = documented[label(archive.image)]
    assert abs(archive.mebibytes - size) <= size / 50
    _, base = documented["python:3.11-slim-bookworm"]
    if had(identity, PYTHON).startswith(base) and archive.image is not OPERATOR:
        assert archive.digest[:12] == identifier


@pytest.mark.parametrize("image", EXAMPLES, ids=label)
def test_an_example_has_its_scripts_and_nothing_beside_them(image):
    command = ["git", "ls-files", "--", str(image.context)]
    tracked = subprocess.run(command, cwd=image.context, capture_output=True, text=True, check=True).stdout
    assert set(had(run, image, "ls", "-A").split()) == {name for name in tracked.split() if name.endswith(".py")}


@pytest.mark.parametrize("image", [DIGITS, OPERATOR], ids=label)
def test_an_image_built_again_from_nothing_is_the_same_to_the_byte(image):
    assert had(identity, image, "--no-cache") == had(identity, image)
