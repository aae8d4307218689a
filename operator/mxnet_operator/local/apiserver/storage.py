"""Object storage: one revision counter, objects by name, and a bounded journal of changes for each resource.

What is stored is never changed in place: a write puts a new object. So what is read here may be passed around freely,
but must not be modified.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile

from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.resources import Key, Resource


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one object: before (None: it was created) and after (None: it was removed)."""

    revision: int
    resource: Key
    before: Object | None
    after: Object | None

    @property
    def object(self) -> Object:
        found = self.after if self.after is not None else self.before
        assert found is not None  # noqa: S101  # a change is of something
        return found


class Journal:
    """Latest changes of one resource; older ones are dropped, and `oldest` is the first revision that is covered."""

    def __init__(self, first_revision: int, limit: int) -> None:
        self.oldest = first_revision
        self._limit = limit
        self._changes: deque[Change] = deque()
        self._listeners: set[Callable[[], None]] = set()

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > self._limit:
            self.oldest = self._changes.popleft().revision
        for listener in tuple(self._listeners):
            listener()

    def since(self, revision: int) -> list[Change]:
        """Return the changes after `revision`, oldest first."""
        latest_first = takewhile(lambda change: change.revision > revision, reversed(self._changes))
        return list(latest_first)[::-1]

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each change, until the returned function is called."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)


Name = tuple[str, str]
"""Identity of an object within its resource: (namespace or "", name)."""


def name_of(obj: Object) -> Name:
    return (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


class Storage:
    """Storage of objects and their history, without validation."""

    def __init__(self, resources: Iterable[Resource], first_revision: int, history: int) -> None:
        self.revision = first_revision
        self._history = history
        keys = {resource.key for resource in resources}
        self._objects: dict[Key, dict[Name, Object]] = {key: {} for key in keys}
        self._journals = {key: Journal(first_revision, history) for key in keys}
        self._observers: list[Callable[[Change], None]] = []

    def observe(self, observer: Callable[[Change], None]) -> None:
        self._observers.append(observer)

    def journal(self, resource: Resource) -> Journal:
        return self._journals[resource.key]

    def find(self, key: Key, name: Name) -> Object | None:
        return self._objects[key].get(name)

    def oldest(self, key: Key) -> Object | None:
        """Return the object of a resource that was created first."""
        return next(iter(self._objects[key].values()), None)

    def objects(self, key: Key, namespace: str = "") -> list[Object]:
        """List the objects of a resource in a namespace ("" is all of them), oldest first."""
        found = self._objects[key].values()
        return [obj for obj in found if not namespace or obj["metadata"].get("namespace") == namespace]

    def put(self, key: Key, obj: Object) -> Object:
        """Store an object under the next revision, and return it as stored."""
        self.revision += 1
        stored = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.revision)}}
        before = self._objects[key].get(name_of(obj))
        self._objects[key][name_of(obj)] = stored
        self._record(Change(self.revision, key, before, stored))
        return stored

    def remove(self, key: Key, obj: Object) -> Object:
        """Remove an object; returns its last state, under the revision of its removal."""
        self.revision += 1
        del self._objects[key][name_of(obj)]
        last = obj | {"metadata": obj["metadata"] | {"resourceVersion": str(self.revision)}}
        self._record(Change(self.revision, key, last, None))
        return last

    def _record(self, change: Change) -> None:
        self._journals[change.resource].append(change)
        for observer in self._observers:
            observer(change)
