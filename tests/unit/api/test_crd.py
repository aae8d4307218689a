"""The CRD: generated from the types and the rules, checked in, and never stale."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.api.formats import definition_of
from mxnet_operator.api.kinds import ALL, MXJOB, Kind
from mxnet_operator.api.rules import NAME_IS_DNS_LABEL
from mxnet_operator.cli.mxnet_operator import app

MANIFESTS = Path(__file__).resolve().parents[3] / "operator" / "manifests"
CHECKED_IN = MANIFESTS / "base" / "crd.yaml"
LEGACY = MANIFESTS / "overlays" / "legacy" / "crd.yaml"


@pytest.mark.parametrize(("arguments", "file"), [([], CHECKED_IN), (["--legacy"], LEGACY)])
def test_the_manifests_that_are_checked_in_are_those_that_the_types_give(arguments: list[str], file: Path) -> None:
    generated = CliRunner().invoke(app, ["crd", *arguments]).stdout
    assert generated == file.read_text(encoding="utf-8"), "stale: run `make generate`"


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_every_rule_of_a_kind_stands_in_each_of_its_versions(kind: Kind) -> None:
    for version in custom_resource_definition(kind)["spec"]["versions"]:
        found = [rule["message"] for rule in _rules(version)]
        known = (*definition_of(kind).rules, *definition_of(kind).transitions)
        typed = ("mxReplicaSpecs",) if kind is MXJOB and version["name"] != "v1alpha1" else ()
        assert sorted(found) == sorted(
            rule.message for rule in known if "template" not in rule.at or rule.at[1] in typed
        )


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_no_rule_about_a_name_is_checked_anew_where_a_status_is_written(kind: Kind) -> None:
    """Kubernetes ratchets nothing at the root, which every write of the status changes."""
    about_names = {rule.message for rule in definition_of(kind).rules if rule.field == ".metadata.name"}
    for version in custom_resource_definition(kind)["spec"]["versions"]:
        at_root = version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
        found = [rule for rule in at_root if rule["fieldPath"] == ".metadata.name"]
        assert {rule["message"] for rule in found} == about_names
        for rule in found:
            assert rule["optionalOldSelf"]
            assert rule["rule"].startswith("oldSelf.hasValue() || ")


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
def test_what_a_new_job_is_refused_for_and_an_update_can_change_has_a_rule_for_updates_too(kind: Kind) -> None:
    """A name never changes; what its length allows does, with the replicas."""
    at_creation = {rule.message for rule in definition_of(kind).rules if rule.at_creation} - {NAME_IS_DNS_LABEL.message}
    assert at_creation
    assert at_creation <= {rule.message for rule in definition_of(kind).transitions}


def test_the_versions_of_mxjob_differ_in_descriptions_templates_and_the_default_by_which_v1beta1_is_known() -> None:
    v1, v1beta1, v1alpha1 = custom_resource_definition()["spec"]["versions"]
    assert v1beta1["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["cleanPodPolicy"].pop("default")
    assert _bare(v1["schema"]) == _bare(v1beta1["schema"]), "v1beta1's map of replicas is stored as v1's"
    template, untyped = (_replicas(each).pop("template") for each in (v1, v1alpha1))
    assert template["properties"]["spec"]["properties"]["containers"]["items"]["required"] == ["name", "image"]
    assert _bare(untyped) == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert _bare(v1["schema"]) == _bare(v1alpha1["schema"])
    assert [version["name"] for version in (v1, v1beta1, v1alpha1) if version["storage"]] == ["v1"]


def test_whatever_a_rule_walks_is_bounded() -> None:
    """The API server refuses a CRD whose rules could cost too much (`docs/facts/kubernetes.md`)."""
    version, *_others = custom_resource_definition()["spec"]["versions"]
    specs = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mxReplicaSpecs"]
    containers = specs["additionalProperties"]["properties"]["template"]["properties"]["spec"]["properties"][
        "containers"
    ]
    assert "maxProperties" in specs
    assert "maxItems" in containers
    assert "maxLength" in containers["items"]["properties"]["name"]


def _replicas(version: dict[str, Any]) -> Any:
    specs = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["mxReplicaSpecs"]
    return specs["additionalProperties"]["properties"]


def _bare(node: object) -> object:
    """A schema without descriptions."""
    if isinstance(node, dict):
        return {key: _bare(child) for key, child in node.items() if key != "description" or isinstance(child, dict)}
    return [_bare(child) for child in node] if isinstance(node, list) else node


def _rules(node: object) -> list[dict[str, str]]:
    if isinstance(node, dict):
        return [*node.get("x-kubernetes-validations", []), *(rule for child in node.values() for rule in _rules(child))]
    if isinstance(node, list):
        return [rule for child in node for rule in _rules(child)]
    return []
