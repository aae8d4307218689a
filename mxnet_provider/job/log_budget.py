"""Budget of a replica's log in a task's log, and what that says of the rest: pure but for its clock."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Final

_TAIL: Final = 1000
_CHARACTERS: Final = 1024
"""A line counts as one, and as one more for each so many characters."""


@dataclass
class LogBudget:
    """Chooses the lines of one replica's log that are shown.

    All are, while they come no faster than the allowance. Of what comes faster, the last 1,000 lines are kept back: the
    newest of them are shown as the allowance grows again, and all of them at the log's end. A notice stands where lines
    were left out.
    """

    _: KW_ONLY
    at_once: int
    """How many lines may come at once."""
    per_second: float
    """How many more a second."""
    notice: Callable[[int], str]
    """Returns the line that stands for so many that were left out."""
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._left = float(self.at_once)
        self._at = self.clock()
        self._held: deque[str] = deque()
        self._held_cost = self._left_out = 0

    def take(self, text: str) -> Iterator[str]:
        self._held.append(text)
        self._held_cost += _cost(text)
        yield from self.release()
        while self._held_cost > _TAIL and len(self._held) > 1:
            self._drop()

    def release(self) -> Iterator[str]:
        """Return the newest of the lines kept back that the allowance now affords; none before a second's worth."""
        if not self._held or not self._affords(max(min(self.per_second, self._held_cost), _cost(self._held[-1]))):
            return
        while self._held_cost > self._left:
            self._drop()
        yield from self.finish()

    def finish(self) -> Iterator[str]:
        """All lines kept back: the log has ended."""
        if self._left_out:
            yield self.notice(self._left_out)
            self._left_out = 0
        self._left -= self._held_cost
        held, self._held, self._held_cost = self._held, deque(), 0
        yield from held

    def _affords(self, cost: float) -> bool:
        now = self.clock()
        self._left = min(float(self.at_once), self._left + (now - self._at) * self.per_second)
        self._at = now
        return self._left >= cost

    def _drop(self) -> None:
        self._held_cost -= _cost(self._held.popleft())
        self._left_out += 1


def _cost(text: str) -> int:
    return 1 + len(text) // _CHARACTERS


def notice(label: str, pod: str, namespace: str) -> Callable[[int], str]:
    """Word what the task's log says where lines of a replica were left out; the command that shows them comes once."""
    command = [
        ": it writes more than the task's log takes. "
        f"All of them, while the pod is there: kubectl logs -n {namespace} {pod}"
    ]

    def text(count: int) -> str:
        return f"[{label}] ... {count} lines are left out here" + (command.pop() if command else ".")

    return text
