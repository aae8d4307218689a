"""Structural schemas of the kinds, generated from the types."""

import ast
import inspect
from functools import cache
from itertools import pairwise
from typing import Any, Final

import msgspec

from mxnet_operator.api import types
from mxnet_operator.api.formats import definition_of, older_types
from mxnet_operator.api.formats.mxjob import MXJOB
from mxnet_operator.api.formats.older_types import MapReplica, OlderStatus
from mxnet_operator.api.kind import Kind
from mxnet_operator.api.pod_template import complete_schema as complete_template
from mxnet_operator.api.pod_template import crd_schema
from mxnet_operator.api.rules import Sentence
from mxnet_operator.api.structural import Schema
from mxnet_operator.api.types import POD_TEMPLATE, MXJob

_UNTYPED: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@cache
def job_schema(kind: Kind = MXJOB) -> Schema:
    """Return the structural schema of a kind with typed pod templates, without rules and versions' defaults.

    That of mxjobs.kubeflow.org holds the fields of all its formats: the rules say which may be combined.
    """
    schema: Schema = _with_templates(_without_templates(kind), crd_schema())
    return schema


@cache
def served_schema(kind: Kind, version: str) -> Schema:
    """Return the structural schema of a version as a CRD has it, with few typed templates.

    With six copies of a template, the CRD was too large for `kubectl apply` (docs/decisions/api.md). The controller
    checks the others, and says what is wrong by a condition.
    """
    bare = _without_templates(kind)
    schema: Schema = _with_templates(bare, _UNTYPED)
    for field, replicas in bare["properties"]["spec"]["properties"].items():
        if _types_templates(kind, version, field):
            schema["properties"]["spec"]["properties"][field] = _with_templates(replicas, crd_schema())
    return schema


def _types_templates(kind: Kind, version: str, replicas: str) -> bool:
    """Whether the CRD types the pod templates below a field of the spec, such as `replicaSpecs`.

    v1beta1's map is that of v1, as which it is stored: what v1 can't read, no later write gets past v1's rules.
    v1alpha1 has no such map.
    """
    return kind is MXJOB and replicas == "mxReplicaSpecs" and version in {MXJOB.stored, "v1beta1"}


def is_served(rule: Sentence, version: str) -> bool:
    """Whether a rule is part of a version's CRD."""
    return bool(rule.cel) and (not rule.versions or version in rule.versions)


@cache
def complete_schema(kind: Kind = MXJOB) -> Schema:
    """Return the schema with every field of the pod templates, and no others: it is too large for a CRD."""
    schema: Schema = _with_templates(_without_templates(kind), complete_template())
    return schema


def _with_templates(schema: Any, template: Schema) -> Any:
    """Return the schema with that of a pod template in each place for one."""
    if isinstance(schema, list):
        return [_with_templates(each, template) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if POD_TEMPLATE in schema:
        kept = {key: value for key, value in schema.items() if key not in (POD_TEMPLATE, "type")}
        return {**template, **kept}
    return {key: _with_templates(each, template) for key, each in schema.items()}


@cache
def _without_templates(kind: Kind) -> Schema:
    schema = _schema_of(MXJob)
    properties: dict[str, Schema] = schema["properties"]
    # With both names, kube-apiserver need not build the schema of the root anew for each validation.
    text = {"type": "string"}
    properties["metadata"] = {"type": "object", "properties": {"name": text, "generateName": text}}
    definition = definition_of(kind)
    if definition.spec is not None:
        properties["spec"] = _schema_of(definition.spec)
    spec = properties["spec"]
    if definition.required is not None:
        del spec["required"]
    if definition.required:
        spec["required"] = list(definition.required)
    also = {name: field for each in definition.also for name, field in _fields(each).items()}
    spec["properties"] = {**also, **spec["properties"]}
    if definition.also_of_replica is not None:
        of_replica = spec["properties"]["mxReplicaSpecs"]["additionalProperties"]["properties"]
        of_replica.update(_fields(definition.also_of_replica))
    for each in definition.refused:
        _add_refused(spec, _fields(each))
    replicas = spec["properties"]["replicaSpecs"]
    _add_refused(replicas.get("items") or replicas["additionalProperties"], _fields(MapReplica))
    status = properties["status"]["properties"]
    status.update(_fields(OlderStatus))
    # A map in v1, a list in the list formats: no one type fits.
    status["replicaStatuses"] = {
        "description": "replicaStatuses maps replica types to counts of replicas; a list of them in older formats.",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return schema


def _add_refused(schema: Schema, fields: dict[str, Schema]) -> None:
    """Declare fields that a rule rejects, where the schema has none of that name."""
    for name, field in fields.items():
        refused = {**field, "description": f"{name} belongs to another format and is rejected."}
        schema["properties"].setdefault(name, refused)


def _fields(of: type[msgspec.Struct]) -> dict[str, Schema]:
    properties: dict[str, Schema] = _schema_of(of)["properties"]
    return properties


def _schema_of(of: type[msgspec.Struct]) -> Schema:
    (reference,), definitions = msgspec.json.schema_components([of], ref_template="{name}")
    for name in definitions.keys() & field_docs().keys():
        for field, text in field_docs()[name].items():
            definitions[name]["properties"][field]["description"] = text
    return _structural(reference, definitions)


@cache
def field_docs() -> dict[str, dict[str, str]]:
    """Return the docstrings of fields, by type and by name in the API: what `kubectl explain` says of them."""
    found: dict[str, dict[str, str]] = {}
    for module in (types, older_types):
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                wire = {each.name: each.encode_name for each in msgspec.structs.fields(getattr(module, node.name))}
                found[node.name] = {
                    wire[field.target.id]: str(doc.value.value)
                    for field, doc in pairwise(node.body)
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                    if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
                }
    return found


def _structural(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return a JSON schema of msgspec's as a structural one: without references, titles, null and Python's defaults."""
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
