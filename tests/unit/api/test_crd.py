"""The CRD: generated from the types and the rules, checked in, and never stale."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.api.rules import RULES
from mxnet_operator.cli.mxnet_operator import app

MANIFESTS = Path(__file__).resolve().parents[3] / "operator" / "manifests"
CHECKED_IN = MANIFESTS / "base" / "crd.yaml"
LEGACY = MANIFESTS / "overlays" / "legacy" / "crd.yaml"


@pytest.mark.parametrize(("arguments", "file"), [([], CHECKED_IN), (["--legacy"], LEGACY)])
def test_the_manifests_that_are_checked_in_are_those_that_the_types_give(arguments: list[str], file: Path) -> None:
    generated = CliRunner().invoke(app, ["crd", *arguments]).stdout
    assert generated == file.read_text(encoding="utf-8"), "stale: run `make generate`"


def test_every_rule_stands_in_the_manifest() -> None:
    text = CHECKED_IN.read_text(encoding="utf-8")
    found = {rule["message"] for rule in _rules(next(yaml.safe_load_all(text)))}
    assert found == {rule.message for rule in RULES}


def test_whatever_a_rule_walks_is_bounded() -> None:
    """The API server refuses a CRD whose rules could cost too much (`facts/control-plane.md`)."""
    (version,) = custom_resource_definition()["spec"]["versions"]
    specs = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mxReplicaSpecs"]
    containers = specs["additionalProperties"]["properties"]["template"]["properties"]["spec"]["properties"][
        "containers"
    ]
    assert "maxProperties" in specs
    assert "maxItems" in containers
    assert "maxLength" in containers["items"]["properties"]["name"]


def _rules(node: object) -> list[dict[str, str]]:
    if isinstance(node, dict):
        return [*node.get("x-kubernetes-validations", []), *(rule for child in node.values() for rule in _rules(child))]
    if isinstance(node, list):
        return [rule for child in node for rule in _rules(child)]
    return []
