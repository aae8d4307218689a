"""Documents about the server itself: health, version, discovery and OpenAPI."""

import hashlib
from collections.abc import Callable

import msgspec
from aiohttp import web

from mxnet_operator.api.builtin_types import types
from mxnet_operator.local.apiserver import builtin_types
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Catalog, Resource

GIT_VERSION = "v1.33.0+mxjob-local"
_SUBRESOURCES = {
    "status": ("", ("get", "patch", "update")),
    "log": ("", ("get",)),
    "binding": ("Binding", ("create",)),
}


def server_version() -> Object:
    """Build the body of /version."""
    major, minor, _ = GIT_VERSION.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "python",
        "platform": "linux/amd64",
    }


def core_versions() -> Object:
    """Build the body of /api."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(catalog: Catalog) -> Object:
    """Build the body of /apis."""
    groups = [group_document(catalog, name) for name in catalog.groups() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group_document(catalog: Catalog, name: str) -> Object:
    """Build the body of /apis/<group>."""
    versions = [{"groupVersion": f"{name}/{each}", "version": each} for each in catalog.groups()[name]]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(catalog: Catalog, group_name: str, version_name: str) -> Object:
    """Build the body of /api/v1 and /apis/<group>/<version>."""
    listed: list[Object] = []
    for resource in catalog.served(group_name, version_name):
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
    group_version = f"{group_name}/{version_name}" if group_name else version_name
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


_FIELD_VALIDATION = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}


def open_api_index(catalog: Catalog) -> Object:
    """Build the body of /openapi/v3: the URL and hash of each group version's document."""
    paths: Object = {}
    for group, versions in catalog.groups().items():
        for version in versions:
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            content = msgspec.json.encode(open_api_document(catalog, group, version))
            digest = hashlib.sha256(content).hexdigest()[:16]
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def open_api_document(catalog: Catalog, group: str, version: str) -> Object:
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


HEALTH = frozenset({"/healthz", "/livez", "/readyz"})


class Documents:
    """Documents about the server, each built at its first request and cached, since resources never change."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._made: dict[str, bytes] = {}

    def answer(self, request: web.Request) -> web.Response | None:
        """Respond with the document at the request's path; None where there is none."""
        path = request.path.rstrip("/")
        build = self._builder(path)
        if build is None:
            return None
        return web.Response(body=self._encoded(path, build), content_type="application/json")

    def _builder(self, path: str) -> Callable[[], Object] | None:
        catalog = self._catalog
        groups = catalog.groups()
        match path.split("/")[1:]:
            case ["version"]:
                return server_version
            case ["api"]:
                return core_versions
            case ["apis"]:
                return lambda: group_list(catalog)
            case ["apis", group] if group in groups:
                return lambda: group_document(catalog, group)
            case ["api", version] if version in groups[""]:
                return lambda: resource_list(catalog, "", version)
            case ["apis", group, version] if version in groups.get(group, ()):
                return lambda: resource_list(catalog, group, version)
            case ["openapi", "v3"]:
                return lambda: open_api_index(catalog)
            case ["openapi", "v3", "api", version] if version in groups[""]:
                return lambda: open_api_document(catalog, "", version)
            case ["openapi", "v3", "apis", group, version] if version in groups.get(group, ()):
                return lambda: open_api_document(catalog, group, version)
        return None

    def _encoded(self, name: str, build: Callable[[], Object]) -> bytes:
        if name not in self._made:
            self._made[name] = msgspec.json.encode(build())
        return self._made[name]
