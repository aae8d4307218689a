"""OpenAPI v3: enough for `kubectl explain`, and for kubectl to leave validation to the server."""

import hashlib

import msgspec

from mxnet_operator.api.builtin_types import types
from mxnet_operator.local.apiserver import builtin_types
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Catalog, Resource

_FIELD_VALIDATION = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}


def index(catalog: Catalog) -> Object:
    """Build the body of /openapi/v3: the URL and hash of each group version's document."""
    paths: Object = {}
    for group, versions in catalog.groups().items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            content = msgspec.json.encode(document(catalog, group, version))
            digest = hashlib.sha256(content).hexdigest()[:16]
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(catalog: Catalog, group: str, version: str) -> Object:
    """Build the OpenAPI document of one group version."""
    paths: Object = {}
    schemas: Object = {}
    for resource in catalog.served(group, version):
        prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
        scope = "/namespaces/{namespace}" if resource.namespaced else ""
        patch = {"x-kubernetes-group-version-kind": _kind(resource), "parameters": [_FIELD_VALIDATION], "responses": {}}
        paths[f"{prefix}{scope}/{resource.plural}/{{name}}"] = {"patch": patch}
        if resource.custom:
            schemas[f"{resource.kind}.{version}.{group}"] = _custom_schema(resource)
            schemas |= builtin_types.open_api_schemas("ObjectMeta")
        elif resource.kind in types():
            schemas |= builtin_types.open_api_schemas(resource.kind)
            schemas[resource.kind]["x-kubernetes-group-version-kind"] = [_kind(resource)]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "local"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _kind(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _custom_schema(resource: Resource) -> Object:
    schema = dict(resource.schema or {})
    properties = {
        **schema.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}]},
    }
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [_kind(resource)]}
