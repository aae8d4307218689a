"""One cache of one controller: events reach it when a schedule says so, or are lost and made up for by a relist."""

from collections.abc import Callable
from typing import Any

import msgspec
from simulator.api import Object

from mxnet_operator.api import names
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.local.apiserver.resources import Resource
from mxnet_operator.local.apiserver.store import Store

Project = Callable[[msgspec.Raw], Any]


class Feed:
    """What a reflector is to a cache, without its connection: `position` is how far the watch has come."""

    def __init__(
        self, store: Store, resource: Resource, cache: Indexer[Any], project: Project, on_change: Callable[[str], None]
    ) -> None:
        self.cache = cache
        self._store, self._resource, self._project, self._on_change = store, resource, project, on_change
        self.position = 0
        self.relist()

    def relist(self) -> None:
        """Make the cache what the server has now; what happened in between is never heard of."""
        found = {_key(obj): obj for obj in self._store.storage.objects(self._resource.key) if self._selects(obj)}
        for key in [key for key in self.cache if key not in found]:
            self.cache.remove(key)
            self._on_change(key)
        for key, obj in found.items():
            if self.cache.version(key) != obj["metadata"]["resourceVersion"]:
                self._put(key, obj)
        self.position = self._store.storage.revision
        self.cache.begin_at(str(self.position))

    def hear(self, events: int | None = None) -> None:
        """Take in the next events, or all of them; after all, the version is the server's, as a bookmark says."""
        changes = self._store.storage.journal(self._resource).since(self.position)
        for change in changes[:events]:
            obj, key = change.object, _key(change.object)
            if change.after is None or not self._selects(obj):
                if self.cache.remove(key) is not None:
                    self._on_change(key)
            else:
                self._put(key, obj)
            self.position = change.revision
            self.cache.advance(str(change.revision))
        if events is None:
            self.position = self._store.storage.revision
            self.cache.advance(str(self.position))

    def _put(self, key: str, obj: Object) -> None:
        item = self._project(msgspec.Raw(msgspec.json.encode(obj)))
        if item is None:
            self.cache.remove(key)
        else:
            self.cache.store(key, obj["metadata"]["resourceVersion"], item)
        self._on_change(key)

    def _selects(self, obj: Object) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return self._resource.custom or labels.get(names.LABEL_OPERATOR_NAME) == names.OPERATOR_NAME


def _key(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
