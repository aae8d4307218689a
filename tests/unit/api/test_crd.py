"""The CRD: generated from the types and the rules, checked in, and never stale."""

from pathlib import Path

import yaml
from typer.testing import CliRunner

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.api.rules import RULES
from mxnet_operator.cli.mxnet_operator import app

CHECKED_IN = Path(__file__).resolve().parents[3] / "operator" / "manifests" / "base" / "crd.yaml"


def test_the_manifest_that_is_checked_in_is_the_one_that_the_types_give() -> None:
    generated = CliRunner().invoke(app, ["crd"]).stdout
    assert generated == CHECKED_IN.read_text(encoding="utf-8"), "stale: run `make generate`"
    assert yaml.safe_load(generated) == custom_resource_definition()


def test_every_rule_stands_in_the_manifest() -> None:
    text = CHECKED_IN.read_text(encoding="utf-8")
    found = {rule["message"] for rule in _rules(yaml.safe_load(text))}
    assert found == {rule.message for rule in RULES}


def test_whatever_a_rule_walks_is_bounded() -> None:
    """The API server refuses a CRD whose rules could cost too much (`facts/control-plane.md`)."""
    version, *_others = custom_resource_definition()["spec"]["versions"]
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
