"""CustomResourceDefinitions of the kinds, generated from the types and the rules."""

from typing import Any, Final

import msgspec

from mxnet_operator.api.formats import definition_of
from mxnet_operator.api.kinds import ALL, LEGACY, MXJOB, Kind
from mxnet_operator.api.rules import Rule, Sentence
from mxnet_operator.api.schemas import is_served, served_schema
from mxnet_operator.api.structural import Schema

_COLUMNS: Final = (
    {"name": "State", "type": "string", "jsonPath": ".status.state"},
    {"name": "Ready", "type": "string", "jsonPath": ".status.ready"},
    {"name": "Restarts", "type": "integer", "jsonPath": ".status.restarts"},
    {"name": "Duration", "type": "string", "jsonPath": ".status.duration"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Started", "type": "date", "jsonPath": ".status.startTime", "priority": 1},
    {"name": "Epoch", "type": "integer", "jsonPath": ".status.training.epoch", "priority": 1},
    {"name": "Percent", "type": "integer", "jsonPath": ".status.training.progressPercentage", "priority": 1},
    {"name": "Form", "type": "string", "jsonPath": ".status.form", "priority": 1},
)
"""Columns of `kubectl get` for every kind; those with a priority are shown with `-o wide` only."""


def definitions() -> list[dict[str, Any]]:
    """Return the CRDs of kubeflow.org, which every installation has."""
    return [custom_resource_definition(kind) for kind in ALL if kind not in LEGACY]


def legacy_definitions() -> list[dict[str, Any]]:
    """Return the CRDs of the overlay `legacy`: other groups' kinds, which make plain `kubectl get mxjobs` ambiguous."""
    return [custom_resource_definition(kind) for kind in LEGACY]


def custom_resource_definition(kind: Kind = MXJOB) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.singular,
                **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
                "categories": list(kind.categories),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == kind.stored,
                    "subresources": {"status": {}},
                    # Of all versions alike the API server would make one for the CRD, and then miss a schema for it.
                    **({"selectableFields": [{"jsonPath": ".status.state"}]} if version == kind.stored else {}),
                    "additionalPrinterColumns": [dict(column) for column in _COLUMNS],
                    "schema": {"openAPIV3Schema": version_schema(kind, version)},
                }
                for version in kind.versions
            ],
        },
    }


def version_schema(kind: Kind, version: str) -> Schema:
    """Return the schema of a kind with its rules, as one version serves it.

    The versions differ in one default: v1beta1's cleanPodPolicy is filled into what is written as v1beta1, as the old
    operator did (a sample of kubeflow/mxnet-operator shows it). It also marks such a job that comes back as v1.
    Only the stored version describes its fields, and few pod templates are typed: with six copies, the CRD was too
    large to apply (docs/decisions/api.md).
    """
    schema: Schema = msgspec.json.decode(msgspec.json.encode(served_schema(kind, version)))
    sentences: tuple[Sentence, ...] = (*definition_of(kind).rules, *definition_of(kind).transitions)
    for rule in sentences:
        if not is_served(rule, version):
            continue
        node = schema
        for key in rule.at:
            if key == "*":
                node = node["items"] if "items" in node else node["additionalProperties"]
            else:
                node = node["properties"][key]
        validation: dict[str, Any] = {"rule": rule.cel, "message": rule.message}
        if rule.words:
            words = (f"(has(self.{field}) ? ' {field} ({why})' : '')" for field, why in rule.words.items())
            validation["messageExpression"] = " + ".join((f"'{rule.message}'", *words))
            del validation["message"]
        if rule.field:
            validation["fieldPath"] = rule.field
        if isinstance(rule, Rule) and rule.required:
            validation["reason"] = "FieldValueRequired"
        if isinstance(rule, Rule) and rule.at_creation:
            validation |= {"rule": f"oldSelf.hasValue() || {rule.cel}", "optionalOldSelf": True}
        node.setdefault("x-kubernetes-validations", []).append(validation)
    if version != kind.stored:
        _drop_descriptions(schema)
        schema["description"] = (
            f"{kind.kind} in API version {version}; for descriptions of its fields add"
            f" --api-version={kind.api_version} to kubectl explain."
        )
    if (kind, version) == (MXJOB, "v1beta1"):
        schema["properties"]["spec"]["properties"]["cleanPodPolicy"]["default"] = "All"
    return schema


def _drop_descriptions(schema: Schema) -> None:
    schema.pop("description", None)
    for child in schema.get("properties", {}).values():
        _drop_descriptions(child)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _drop_descriptions(schema[key])
