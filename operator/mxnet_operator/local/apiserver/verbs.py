"""Verbs with an immediate response: each applies a request to the store and returns the answer.

No HTTP and no waiting: `server` speaks HTTP for them, and a simulation asks them from within its process.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mxnet_operator.local.apiserver import resources as builtin
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.patch import patcher
from mxnet_operator.local.apiserver.requests import (
    Request,
    Target,
    delete_options,
    media_type,
    object_selector,
    read_json,
    read_object,
    write_options,
)
from mxnet_operator.local.apiserver.statuses import method_not_allowed, success
from mxnet_operator.local.apiserver.store import Store
from mxnet_operator.local.apiserver.tables import table, wants_table

_ANSWERED_WITH_OBJECT = (builtin.PODS, builtin.SERVICES, builtin.NAMESPACES)


@dataclass(frozen=True, slots=True)
class Answer:
    """Response of a verb: a JSON value, which may be the stored object itself, and texts for Warning headers."""

    value: Any
    code: int = 200
    warnings: Sequence[str] = ()


class Verbs:
    """Verbs over one store, except watches and logs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def answer(self, request: Request, target: Target) -> Answer:
        """Handle a request to its target.

        Raises:
            StatusError: it is rejected.
        """
        resource, verbs = target.resource, target.resource.verbs
        if target.subresource == "binding":
            allow(request.method == "POST")
            return self._bind(request, target)
        in_one_place = bool(target.namespace) or not resource.namespaced
        match request.method, bool(target.name):
            case "GET", False:
                allow("list" in verbs)
                return self._list(request, target)
            case "GET", True:
                allow("get" in verbs)
                return self._object(request, target, self._store.get(resource, target.namespace, target.name))
            case "POST", False:
                allow("create" in verbs and in_one_place)
                return self._create(request, target)
            case "PUT", True:
                allow("update" in verbs)
                return self._update(request, target)
            case "PATCH", True:
                allow("patch" in verbs)
                return self._patch(request, target)
            case "DELETE", True:
                allow("delete" in verbs and not target.subresource)
                return self._delete(request, target)
        raise method_not_allowed()

    def _list(self, request: Request, target: Target) -> Answer:
        selector = object_selector(target, request.query)
        return self._objects(request, target, self._store.select(target.resource, target.namespace, selector))

    def _create(self, request: Request, target: Target) -> Answer:
        body, options = read_object(request), write_options(request, target)
        obj = self._store.create(target.resource, target.namespace, body, options)
        return self._object(request, target, obj, 201, options.warnings)

    def _update(self, request: Request, target: Target) -> Answer:
        body, options = read_object(request), write_options(request, target)
        obj = self._store.update(target.resource, target.namespace, target.name, body, options)
        return self._object(request, target, obj, 200, options.warnings)

    def _patch(self, request: Request, target: Target) -> Answer:
        kind = media_type(request)
        patcher(target.resource, kind)
        patch, options = read_json(request, kind), write_options(request, target)
        obj = self._store.patch(target.resource, target.namespace, target.name, kind, patch, options=options)
        return self._object(request, target, obj, 200, options.warnings)

    def _bind(self, request: Request, target: Target) -> Answer:
        self._store.bind(target.namespace, target.name, read_json(request))
        return Answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    def _delete(self, request: Request, target: Target) -> Answer:
        options = delete_options(request)
        obj, gone = self._store.delete(target.resource, target.namespace, target.name, options)
        if gone and target.resource not in _ANSWERED_WITH_OBJECT:
            return Answer(success(target.resource, target.name, obj["metadata"]["uid"]))
        return self._object(request, target, obj)

    def _object(
        self, request: Request, target: Target, obj: Object, code: int = 200, warnings: Sequence[str] = ()
    ) -> Answer:
        if wants_table(request.headers):
            metadata = {"resourceVersion": at(obj, "metadata", "resourceVersion", default="")}
            obj = table(target.resource, [obj], self._store.clock(), metadata)
        return Answer(obj, code, warnings)

    def _objects(self, request: Request, target: Target, items: Sequence[Object]) -> Answer:
        """Answer with a whole list: the API lets a server ignore `limit`."""
        resource, metadata = target.resource, {"resourceVersion": str(self._store.storage.revision)}
        if wants_table(request.headers):
            return Answer(table(resource, items, self._store.clock(), metadata))
        if not resource.custom:  # the list says what they are, for all of them
            items = [{key: value for key, value in item.items() if key not in ("apiVersion", "kind")} for item in items]
        return Answer(
            {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata, "items": items}
        )


def allow(allowed: bool) -> None:
    """Raise StatusError (405) unless the resource has the verb."""
    if not allowed:
        raise method_not_allowed()
