"""The CustomResourceDefinition of MXJob, generated from the types and the rules."""

from functools import cache
from typing import Any

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.kinds import MXJOB, Kind
from mxnet_operator.api.rules import RULES
from mxnet_operator.api.structural import Schema
from mxnet_operator.api.types import MXJob

NAME = MXJOB.name


def custom_resource_definition(kind: Kind = MXJOB) -> dict[str, Any]:
    """The CRD of a kind as a manifest for `kubectl apply`."""
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
                "shortNames": list(kind.short_names),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": "State", "type": "string", "jsonPath": ".status.state"},
                        {
                            "name": "Restarts",
                            "type": "integer",
                            "jsonPath": ".status.restarts",
                            "priority": 1,
                        },
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "schema": {"openAPIV3Schema": _with_rules(job_schema())},
                }
            ],
        },
    }


@cache
def job_schema() -> Schema:
    """The structural schema of a v1 MXJob, without the rules."""
    (reference,), definitions = msgspec.json.schema_components([MXJob], ref_template="{name}")
    schema = _structural(reference, definitions)
    schema["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string"}}}
    return schema


def _structural(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """A JSON schema of msgspec's as a structural one: no references, titles, unions with null, or Python's defaults."""
    schema = dict(schema)
    while "$ref" in schema or "anyOf" in schema:
        if "$ref" in schema:
            schema = {**definitions[schema.pop("$ref")], **schema}
        else:
            (alternative,) = (one for one in schema.pop("anyOf") if one.get("type") != "null")
            schema = {**alternative, **schema}
    structural: Schema = {}
    for key, value in schema.items():
        match key:
            case "title" | "default":
                pass
            case "x-default":
                structural["default"] = value
            case "description":
                structural[key] = " ".join(value.split())
            case "properties":
                structural[key] = {name: _structural(child, definitions) for name, child in value.items()}
            case "items" | "additionalProperties" if isinstance(value, dict):
                structural[key] = _structural(value, definitions)
            case "required" if not value:
                pass
            case _:
                structural[key] = value
    if "enum" in structural:
        structural["type"] = "string"
    if "properties" in structural:
        structural.pop("additionalProperties", None)
    elif structural.get("additionalProperties") == {}:
        del structural["additionalProperties"]
    return structural


def _with_rules(schema: Schema) -> Schema:
    """A copy of the schema in which each rule stands at its field."""
    schema = msgspec.json.decode(msgspec.json.encode(schema))
    for rule in RULES:
        node = schema
        for key in rule.at:
            node = node["additionalProperties"] if key == "*" else node["properties"][key]
        validation = {"rule": rule.cel, "message": rule.message, "fieldPath": rule.field}
        node.setdefault("x-kubernetes-validations", []).append(validation)
    return schema
