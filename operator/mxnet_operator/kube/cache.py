"""What the server has, as far as we have heard: objects by key, and by whatever else they are looked up."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

Index = Callable[[T], str]
"""Gives the value that an object is found by; the empty string keeps it out of the index."""


class Indexer(Generic[T]):
    """Objects of one resource by `namespace/name`, with their resourceVersions.

    Written by a reflector only. `resource_version` is how far the cache has come, for who waits to see an own write.
    """

    def __init__(self, indexes: Mapping[str, Index[T]] | None = None) -> None:
        """An empty cache with named indexes."""
        self.resource_version = 0
        self._objects: dict[str, tuple[str, T]] = {}
        self._functions = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._functions}

    def __len__(self) -> int:
        """How many objects there are."""
        return len(self._objects)

    def __iter__(self) -> Iterator[str]:
        """The keys."""
        return iter(self._objects)

    def get(self, key: str) -> T | None:
        """The object with this `namespace/name`."""
        entry = self._objects.get(key)
        return None if entry is None else entry[1]

    def version(self, key: str) -> str | None:
        """The resourceVersion of the object with this key."""
        entry = self._objects.get(key)
        return None if entry is None else entry[0]

    def by_index(self, name: str, value: str) -> tuple[T, ...]:
        """The objects for which the index function gives this value."""
        return tuple(self._indexes[name].get(value, {}).values())

    def store(self, key: str, version: str, item: T) -> T | None:
        """Put an object in; returns what it takes the place of."""
        old = self.remove(key)
        self._objects[key] = (version, item)
        for name, value_of in self._functions.items():
            if value := value_of(item):
                self._indexes[name].setdefault(value, {})[key] = item
        return old

    def remove(self, key: str) -> T | None:
        """Take an object out; returns it."""
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
        """Note that everything up to this resourceVersion has been heard; versions are integers (KEP-5504)."""
        if version.isdecimal():
            self.resource_version = max(self.resource_version, int(version))

    def begin_at(self, version: str) -> None:
        """Note that the cache has been made equal to a list with this resourceVersion, be it a lower one."""
        self.resource_version = int(version) if version.isdecimal() else 0
