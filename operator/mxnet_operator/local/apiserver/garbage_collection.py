"""Garbage collection by owner references, and deletion of the contents of a namespace.

The collector reacts to changes only: `observe` queues what to check, `run` does the work. Between the two, dependents
outlive their owner, as they do for a while in a real cluster.
"""

from collections.abc import Callable

from mxnet_operator.local.apiserver import resources as builtin
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.patch import MERGE_PATCH
from mxnet_operator.local.apiserver.resources import Key, Resource
from mxnet_operator.local.apiserver.storage import Change, Name, name_of
from mxnet_operator.local.apiserver.store import FOREGROUND, DeleteOptions, Store

Place = tuple[Key, Name]


class GarbageCollector:
    """Garbage collector: deletes orphans, completes foreground deletions, empties namespaces.

    `wake` is called when there is work for `run`.
    """

    def __init__(self, store: Store, wake: Callable[[], object] = lambda: None) -> None:
        self._store = store
        self._wake = wake
        self._resources = {r.key: r for r in store.catalog.resources if r.stored}
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, set[Place]] = {}
        self._dirty: dict[Place, None] = {}
        for resource in self._resources.values():
            for obj in store.select(resource):
                self._note(resource.key, None, obj)
        store.storage.observe(self._observe)

    def run(self) -> int:
        """Process the queued objects; returns their number."""
        looked_at = 0
        while self._dirty:
            place = next(iter(self._dirty))
            del self._dirty[place]
            looked_at += 1
            key, (namespace, name) = place
            obj = self._store.storage.find(key, (namespace, name))
            if obj is not None:
                self._tend(self._resources[key], self._resources[key].present(obj))
        return looked_at

    def _observe(self, change: Change) -> None:
        self._note(change.resource, change.before, change.after)
        if self._dirty:
            self._wake()

    def _note(self, key: Key, before: Object | None, after: Object | None) -> None:
        obj = after if after is not None else before
        if obj is None:
            return
        place = (key, name_of(obj))
        uid = obj["metadata"]["uid"]
        old_owners = _owner_uids(before) if before else set()
        owners = _owner_uids(after) if after else set()
        for owner in old_owners - owners:
            self._dependents.get(owner, set()).discard(place)
        for owner in owners - old_owners:
            self._dependents.setdefault(owner, set()).add(place)
        if after is None:
            self._places.pop(uid, None)
            self._dirty.update(dict.fromkeys(self._dependents.pop(uid, ())))
            self._dirty.update((owner_at, None) for owner in old_owners if (owner_at := self._places.get(owner)))
            namespace = (builtin.NAMESPACES.key, ("", obj["metadata"].get("namespace", "")))
            self._dirty[namespace] = None
        else:
            self._places[uid] = place
            if owners - old_owners or "deletionTimestamp" in after["metadata"]:
                self._dirty[place] = None

    def _tend(self, resource: Resource, obj: Object) -> None:
        metadata = obj["metadata"]
        if "deletionTimestamp" in metadata:
            if resource is builtin.NAMESPACES:
                self._empty_namespace(obj)
            elif FOREGROUND in metadata.get("finalizers", ()):
                self._delete_dependents_first(resource, obj)
        elif owners := metadata.get("ownerReferences"):
            absent = [owner["uid"] for owner in owners if self._is_absent(owner, metadata.get("namespace", ""))]
            if len(absent) == len(owners):
                self._delete(resource, obj)
            elif absent:
                self._disown(resource, obj, set(absent))

    def _is_absent(self, owner: Object, namespace: str) -> bool:
        if self._store.catalog.of_kind(owner["apiVersion"], owner["kind"]) is None:
            return False  # of a kind that isn't served here: nothing is known about it
        place = self._places.get(owner["uid"])
        return place is None or place[1][0] not in ("", namespace)

    def _delete(self, resource: Resource, obj: Object, propagation: str = "Background") -> None:
        metadata = obj["metadata"]
        options = DeleteOptions(uid=metadata["uid"], propagation=propagation)
        self._store.delete(resource, metadata.get("namespace", ""), metadata["name"], options)

    def _delete_dependents_first(self, resource: Resource, owner: Object) -> None:
        uid = owner["metadata"]["uid"]
        blocked = False
        for key, name in sorted(self._dependents.get(uid, ())):
            dependent = self._store.storage.find(key, name)
            if dependent is None:
                continue
            references = dependent["metadata"]["ownerReferences"]
            blocked |= any(each["uid"] == uid and each.get("blockOwnerDeletion") for each in references)
            if "deletionTimestamp" not in dependent["metadata"]:
                self._delete(self._resources[key], self._resources[key].present(dependent), "Foreground")
        remaining = any(self._store.storage.find(*place) for place in self._dependents.get(uid, ()))
        if not (blocked and remaining):
            self._finish(resource, owner, FOREGROUND)

    def _disown(self, resource: Resource, obj: Object, uids: set[str]) -> None:
        kept = [each for each in obj["metadata"]["ownerReferences"] if each["uid"] not in uids]
        self._change(resource, obj, {"ownerReferences": kept})

    def _finish(self, resource: Resource, obj: Object, finalizer: str) -> None:
        kept = [each for each in obj["metadata"].get("finalizers", ()) if each != finalizer]
        self._change(resource, obj, {"finalizers": kept})

    def _change(self, resource: Resource, obj: Object, metadata: Object) -> None:
        namespace, name = name_of(obj)
        self._store.patch(resource, namespace, name, MERGE_PATCH, {"metadata": metadata})

    def _empty_namespace(self, namespace: Object) -> None:
        name = namespace["metadata"]["name"]
        occupied = False
        for resource in self._resources.values():
            if not resource.namespaced:
                continue
            for obj in self._store.select(resource, name):
                if "deletionTimestamp" not in obj["metadata"]:
                    self._delete(resource, obj)
            occupied |= bool(self._store.storage.objects(resource.key, name))
        if not occupied:
            self._store.storage.remove(builtin.NAMESPACES.key, namespace)


def _owner_uids(obj: Object) -> set[str]:
    return {each["uid"] for each in at(obj, "metadata", "ownerReferences", default=())}
