"""Watch cache: objects by key and by named indexes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

Index = Callable[[T], str]
"""Function from an object to its value in an index; the empty string keeps the object out of it."""


class Indexer(Generic[T]):
    """Cache of the objects of one resource by `namespace/name`, with their resourceVersions.

    Only a reflector writes it. `resource_version` is that of the latest event, for callers that wait for an own write.
    """

    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        """Create an empty cache with named indexes."""
        self.resource_version = 0
        self._objects: dict[str, tuple[str, T]] = {}
        self._functions = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._functions}

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys."""
        return iter(self._objects)

    def values(self) -> list[T]:
        """Return the objects."""
        return [item for _, item in self._objects.values()]

    def get(self, key: str) -> T | None:
        """Return the object with this `namespace/name`; None if there is none."""
        entry = self._objects.get(key)
        return None if entry is None else entry[1]

    def version(self, key: str) -> str | None:
        """Return the resourceVersion of the object with this key; None if there is none."""
        entry = self._objects.get(key)
        return None if entry is None else entry[0]

    def by_index(self, name: str, value: str) -> tuple[T, ...]:
        """Return the objects that have this value in an index."""
        return tuple(self._indexes[name].get(value, {}).values())

    def store(self, key: str, version: str, item: T) -> T | None:
        """Store an object; returns the one that it replaces."""
        old = self.remove(key)
        self._objects[key] = (version, item)
        for name, value_of in self._functions.items():
            if value := value_of(item):
                self._indexes[name].setdefault(value, {})[key] = item
        return old

    def remove(self, key: str) -> T | None:
        """Remove an object; returns it."""
        entry = self._objects.pop(key, None)
        if entry is None:
            return None
        for name, value_of in self._functions.items():
            value = value_of(entry[1])
            found = self._indexes[name].get(value)
            if found is not None:
                found.pop(key, None)
                if not found:
                    del self._indexes[name][value]
        return entry[1]

    def advance(self, version: str) -> None:
        """Record that the cache is current up to this resourceVersion; versions are integers (KEP-5504)."""
        if version.isdecimal():
            self.resource_version = max(self.resource_version, int(version))

    def begin_at(self, version: str) -> None:
        """Record that the cache equals a list with this resourceVersion, which may be a lower one."""
        self.resource_version = int(version) if version.isdecimal() else 0
