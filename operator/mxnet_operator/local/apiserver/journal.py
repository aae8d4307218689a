"""Bounded history of changes, for watches and for lists at an earlier resourceVersion."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mxnet_operator.local.apiserver.resources import Key

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one object: before (None: it was created) and after (None: it was removed)."""

    revision: int
    resource: Key
    before: Object | None
    after: Object | None

    @property
    def object(self) -> Object:
        """The changed object."""
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
        """Record a change and notify the listeners."""
        self._changes.append(change)
        if len(self._changes) > self._limit:
            self.oldest = self._changes.popleft().revision
        for listener in tuple(self._listeners):
            listener()

    def since(self, revision: int) -> list[Change]:
        """Return the changes after `revision`, oldest first."""
        return list(self.backwards(revision))[::-1]

    def backwards(self, revision: int) -> Iterator[Change]:
        """Iterate over the changes after `revision`, latest first."""
        for change in reversed(self._changes):
            if change.revision <= revision:
                return
            yield change

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each change, until the returned function is called."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)
