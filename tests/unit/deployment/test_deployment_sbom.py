"""The image's bill of materials: what is locked stands in it, and nothing of the run that wrote it."""

import json
import subprocess

import pytest
from deployment import OPERATOR, locked
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.exhaustive  # it makes two environments

ROOT = OPERATOR.parent


@pytest.fixture(scope="module")
def bom(tmp_path_factory):
    """What `make sbom` writes."""
    file = tmp_path_factory.mktemp("sbom") / "sbom.json"
    command = ["make", "--silent", "--assume-old=.venv/.installed", "sbom", f"SBOM={file}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_bytes())


def test_the_components_are_what_is_locked_for_the_image(bom):
    found = {canonicalize_name(each["name"]): each["version"] for each in bom["components"]}
    assert found == {name: str(version) for name, version in locked("controller.txt").items()}
    about = bom["metadata"]["component"]
    assert (about["name"], about["type"]) == ("mxnet-operator", "application")


def test_nothing_in_it_differs_from_run_to_run(bom):
    assert "serialNumber" not in bom
    assert "timestamp" not in bom["metadata"]


def test_every_component_has_a_licence_and_a_place_in_the_graph(bom):
    assert [each["name"] for each in bom["components"] if not each.get("licenses")] == []
    edges = {each["ref"]: each.get("dependsOn", []) for each in bom["dependencies"]}
    reached, frontier = set(), {bom["metadata"]["component"]["bom-ref"]}
    while frontier:
        reached |= frontier
        frontier = {ref for each in frontier for ref in edges[each]} - reached
    assert {each["bom-ref"] for each in bom["components"]} <= reached
