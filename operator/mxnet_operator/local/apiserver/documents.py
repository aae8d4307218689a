"""Documents about the server itself: health, version, discovery, and the OpenAPI of custom resources."""

import hashlib
from typing import Final

import msgspec

from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Catalog, Resource

HEALTH: Final = frozenset({"/healthz", "/livez", "/readyz"})
_VERSION: Final = {
    "major": "1",
    "minor": "33",
    "gitVersion": "v1.33.0+mxjob-local",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "python",
    "platform": "linux/amd64",
}
_CORE_VERSIONS: Final = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
_SUBRESOURCES: Final = {
    "status": ("", ("get", "patch", "update")),
    "log": ("", ("get",)),
    "binding": ("Binding", ("create",)),
}
_FIELD_VALIDATION: Final = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
"""Parameter by which kubectl sees that the server finds unknown fields."""


class Documents:
    """Documents about the server, each built at its first request and cached, since resources never change."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._made: dict[str, bytes] = {}

    def at(self, path: str) -> bytes | None:
        """Return the document at a path as JSON; None where there is none."""
        path = path.rstrip("/")
        if path not in self._made and (document := self._build(path)) is not None:
            self._made[path] = msgspec.json.encode(document)
        return self._made.get(path)

    def _build(self, path: str) -> Object | None:
        groups = self._catalog.groups()
        match path.split("/")[1:]:
            case ["version"]:
                return _VERSION
            case ["api"]:
                return _CORE_VERSIONS
            case ["apis"]:
                listed = [_group(name, versions) for name, versions in groups.items() if name]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
            case ["apis", group] if group in groups:
                return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, groups[group])}
            case ["api", version] if version in groups[""]:
                return self._resource_list("", version)
            case ["apis", group, version] if version in groups.get(group, ()):
                return self._resource_list(group, version)
            case ["openapi", "v3"]:
                return {"paths": dict(self._open_api_entry(g, v) for g, versions in groups.items() for v in versions)}
            case ["openapi", "v3", "api", version] if version in groups[""]:
                return self._open_api("", version)
            case ["openapi", "v3", "apis", group, version] if version in groups.get(group, ()):
                return self._open_api(group, version)
        return None

    def _resource_list(self, group: str, version: str) -> Object:
        listed: list[Object] = []
        for resource in self._catalog.served(group, version):
            names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
            listed.append(
                {
                    "name": resource.plural,
                    "singularName": resource.singular,
                    "namespaced": resource.namespaced,
                    "kind": resource.kind,
                    "verbs": sorted(resource.verbs),
                }
                | {key: value for key, value in names.items() if value}
            )
            for subresource in sorted(resource.subresources):
                kind, verbs = _SUBRESOURCES[subresource]
                listed.append(
                    {
                        "name": f"{resource.plural}/{subresource}",
                        "singularName": "",
                        "namespaced": resource.namespaced,
                        "kind": kind or resource.kind,
                        "verbs": list(verbs),
                    }
                )
        group_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}

    def _open_api_entry(self, group: str, version: str) -> tuple[str, Object]:
        """Return the path of a version's document, and its address, which changes with its content."""
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        digest = hashlib.sha256(msgspec.json.encode(self._open_api(group, version))).hexdigest()[:16]
        return path, {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}

    def _open_api(self, group: str, version: str) -> Object:
        paths: Object = {}
        schemas: Object = {}
        for resource in self._catalog.served(group, version):
            kind = {"group": group, "version": version, "kind": resource.kind}
            prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
            scope = "/namespaces/{namespace}" if resource.namespaced else ""
            patch = {"x-kubernetes-group-version-kind": kind, "parameters": [_FIELD_VALIDATION], "responses": {}}
            paths[f"{prefix}{scope}/{resource.plural}/{{name}}"] = {"patch": patch}
            if resource.custom:
                schema = _custom_schema(resource) | {"x-kubernetes-group-version-kind": [kind]}
                schemas[f"{resource.kind}.{version}.{group}"] = schema
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "local"},
            "paths": paths,
            "components": {"schemas": schemas},
        }


def _group(name: str, versions: list[str]) -> Object:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _custom_schema(resource: Resource) -> Object:
    schema = dict(resource.schema or {})
    header = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {**schema, "properties": {**schema.get("properties", {}), **header}}
