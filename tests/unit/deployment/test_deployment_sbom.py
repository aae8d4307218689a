"""The image's bill of materials: `make sbom` writes the same every time, and what is locked stands in it."""

import json
import subprocess

import pytest
from deployment import OPERATOR, locked
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.exhaustive  # it makes three environments

ROOT = OPERATOR.parent


def written(file):
    """What `make sbom` writes."""
    command = ["make", "--silent", "--assume-old=.venv/.installed", "sbom", f"SBOM={file}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return file.read_bytes()


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return written(tmp_path_factory.mktemp("sbom") / "first.json")


@pytest.fixture
def bom(first):
    return json.loads(first)


def test_two_runs_write_the_same_bytes(first, tmp_path):
    assert written(tmp_path / "second.json") == first


def test_the_components_are_what_is_locked_for_the_image(bom):
    found = {canonicalize_name(each["name"]): each["version"] for each in bom["components"]}
    assert found == {name: str(version) for name, version in locked("controller.txt").items()}
    about = bom["metadata"]["component"]
    assert (about["name"], about["type"]) == ("mxnet-operator", "application")


def test_every_component_has_a_licence_and_a_place_in_the_graph(bom):
    assert [each["name"] for each in bom["components"] if not each.get("licenses")] == []
    edges = {each["ref"]: each.get("dependsOn", []) for each in bom["dependencies"]}
    reached, frontier = set(), {bom["metadata"]["component"]["bom-ref"]}
    while frontier:
        reached |= frontier
        frontier = {ref for each in frontier for ref in edges[each]} - reached
    assert {each["bom-ref"] for each in bom["components"]} <= reached
