"""Documents about the server itself: health, version, discovery and OpenAPI."""

import hashlib
import re
from collections.abc import Callable

import msgspec
from aiohttp import web

from mxnet_operator.local.apiserver import discovery, openapi
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Catalog

HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_AGGREGATED = re.compile(r"application/json;g=apidiscovery\.k8s\.io;v=(v2|v2beta1);as=APIGroupDiscoveryList")


class Documents:
    """Documents about the server, each built at its first request and cached, since resources never change."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._made: dict[str, bytes] = {}

    def answer(self, request: web.Request) -> web.Response | None:
        """Respond with the document at the request's path; None where there is none."""
        path = request.path.rstrip("/")
        aggregated = _AGGREGATED.search(request.headers.get("Accept", "").replace(" ", ""))
        if aggregated and path in ("/api", "/apis"):
            return self._aggregated(request, path, aggregated)
        build = self._builder(path)
        if build is None:
            return None
        return web.Response(body=self._encoded(path, build), content_type="application/json")

    def _aggregated(self, request: web.Request, path: str, form: re.Match[str]) -> web.Response:
        names = [""] if path == "/api" else [name for name in self._catalog.groups() if name]
        body = self._encoded(path + form[1], lambda: discovery.aggregated(self._catalog, names, form[1]))
        tag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
        headers = {"ETag": tag, "Vary": "Accept", "Content-Type": form[0]}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag, "Vary": "Accept"})
        return web.Response(body=body, headers=headers)

    def _builder(self, path: str) -> Callable[[], Object] | None:
        catalog = self._catalog
        groups = catalog.groups()
        match path.split("/")[1:]:
            case ["version"]:
                return discovery.version
            case ["api"]:
                return discovery.core_versions
            case ["apis"]:
                return lambda: discovery.group_list(catalog)
            case ["apis", group] if group in groups:
                return lambda: discovery.group(catalog, group)
            case ["api", version] if version in groups[""]:
                return lambda: discovery.resource_list(catalog, "", version)
            case ["apis", group, version] if version in groups.get(group, ()):
                return lambda: discovery.resource_list(catalog, group, version)
            case ["openapi", "v3"]:
                return lambda: openapi.index(catalog)
            case ["openapi", "v3", "api", version] if version in groups[""]:
                return lambda: openapi.document(catalog, "", version)
            case ["openapi", "v3", "apis", group, version] if version in groups.get(group, ()):
                return lambda: openapi.document(catalog, group, version)
        return None

    def _encoded(self, name: str, build: Callable[[], Object]) -> bytes:
        if name not in self._made:
            self._made[name] = msgspec.json.encode(build())
        return self._made[name]
