"""The CRD: generated from the types and the rules, checked in, and never stale."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.api.formats.transition_rules import FINISHED_STAYS
from mxnet_operator.api.kinds import ALL, Kind
from mxnet_operator.cli.mxnet_operator import app

MANIFESTS = Path(__file__).resolve().parents[3] / "operator" / "manifests"
CHECKED_IN = MANIFESTS / "base" / "crd.yaml"
LEGACY = MANIFESTS / "overlays" / "legacy" / "crd.yaml"


@pytest.mark.parametrize(("arguments", "file"), [([], CHECKED_IN), (["--legacy"], LEGACY)])
def test_the_manifests_that_are_checked_in_are_those_that_the_types_give(arguments: list[str], file: Path) -> None:
    generated = CliRunner().invoke(app, ["crd", *arguments]).stdout
    assert generated == file.read_text(encoding="utf-8"), "stale: run `make generate`"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_no_rule_at_the_root_refuses_a_status_for_what_a_stored_job_is(kind: Kind) -> None:
    """Kubernetes ratchets nothing at the root, which every write of the status changes."""
    for version in custom_resource_definition(kind)["spec"]["versions"]:
        for rule in version["schema"]["openAPIV3Schema"].get("x-kubernetes-validations", ()):
            if rule["fieldPath"] == ".metadata.name":
                assert rule["optionalOldSelf"]
                assert rule["rule"].startswith("oldSelf.hasValue() || ")
            else:
                assert "oldSelf" in rule["rule"]
                assert rule["message"] == FINISHED_STAYS.message


def test_the_versions_of_mxjob_differ_in_rules_descriptions_templates_and_the_default_of_v1beta1() -> None:
    v1, v1beta1, v1alpha1 = custom_resource_definition()["spec"]["versions"]
    assert v1beta1["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["cleanPodPolicy"].pop("default")
    assert _bare(v1["schema"]) == _bare(v1beta1["schema"]), "v1beta1's map of replicas is stored as v1's"
    template, untyped = (_replicas(each).pop("template") for each in (v1, v1alpha1))
    assert template["properties"]["spec"]["properties"]["containers"]["items"]["required"] == ["name", "image"]
    assert _bare(untyped) == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert _bare(v1["schema"]) == _bare(v1alpha1["schema"])
    assert [version["name"] for version in (v1, v1beta1, v1alpha1) if version["storage"]] == ["v1"]


def _replicas(version: dict[str, Any]) -> Any:
    specs = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mxReplicaSpecs"]
    return specs["additionalProperties"]["properties"]


def _bare(node: object) -> object:
    """A schema without descriptions and rules."""
    if isinstance(node, dict):
        kept = {key: child for key, child in node.items() if key != "x-kubernetes-validations"}
        return {key: _bare(child) for key, child in kept.items() if key != "description" or isinstance(child, dict)}
    return [_bare(child) for child in node] if isinstance(node, list) else node
