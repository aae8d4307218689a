"""Lines of gangs that wait for extended resources: which of them comes first, for how long, and who is held back.

`plan/precedence.py` has the rule between two jobs. A line is of one resource and one priority class. Its first gang
comes first until it is placed, but not longer than `precedence_lasts`: then all jobs that were held back get their
pods, nobody comes first for `after`, and then the one that `next_by_age` says. So a gang that can never be placed
blocks nobody for ever. What is known here is made anew by a controller that takes over, as it reconciles every job.
"""

import logging
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import (
    Claimant,
    HeldBack,
    Observed,
    amount_in_words,
    claimant,
    comes_before,
    next_by_age,
    precedence_lasts,
)
from mxnet_operator.plan.waits import left_of

_Line = tuple[str, frozenset[str]]
"""Extended resource and priority classes."""

log = logging.getLogger(__name__)


class _Waiter(msgspec.Struct):
    """Gang in a line."""

    claims: Claimant
    since: datetime
    eligible_at: float
    times: int = 0
    """How often it came first without being placed."""


class Line:
    """Gangs that lack one resource; times are those of a monotonic clock, in seconds."""

    def __init__(self, resource: str, after: timedelta) -> None:
        """Create an empty line whose gangs may come first once they have waited for `after`."""
        self.resource = resource
        self._after = after
        self.waiting: dict[str, _Waiter] = {}
        self.held: set[str] = set()
        """Keys of the jobs that the first gang holds back."""
        self._first = ""
        self._ends_at = 0.0
        self._in_vain = 0
        """How many gangs in succession came first without being placed."""
        self._choose_at = math.inf
        """Time before which no gang may come first."""

    def join(self, key: str, waiter: _Waiter) -> None:
        """Add a gang."""
        self.waiting[key] = waiter
        self._choose_at = min(self._choose_at, max(waiter.eligible_at, self._rests_until))

    def leave(self, key: str) -> set[str]:
        """Remove a gang; return the keys of the jobs that it held back."""
        del self.waiting[key]
        if key != self._first:
            return set()
        released, self.held = self.held, set()
        self._first, self._in_vain, self._choose_at = "", 0, 0.0
        return released

    def first(self, now: float) -> tuple[_Waiter, float] | None:
        """Return the gang that comes first, and until when; None where none does."""
        if self._first and now >= self._ends_at:
            self.waiting[self._first].times += 1
            self.held.clear()  # They look again by themselves.
            self._first, self._in_vain = "", self._in_vain + 1
            self._choose_at = self._rests_until
        if not self._first and now >= self._choose_at:
            self._choose(now)
        return (self.waiting[self._first], self._ends_at) if self._first else None

    @property
    def _rests_until(self) -> float:
        """Time until which nobody comes first, since one did in vain."""
        return self._ends_at + self._after.total_seconds() if self._in_vain else 0.0

    def _choose(self, now: float) -> None:
        ready = [key for key, each in self.waiting.items() if each.eligible_at <= now]
        if not ready:
            self._choose_at = min((each.eligible_at for each in self.waiting.values()), default=math.inf)
            return
        by_age = sorted(ready, key=lambda key: (self.waiting[key].claims.created_at, key))
        self._first = by_age[next_by_age(len(by_age), self._in_vain)]
        chosen = self.waiting[self._first]
        lasts = precedence_lasts(self._after, chosen.times)
        self._ends_at = now + lasts.total_seconds()
        log.info("%s comes first for %s, for %s at the most", chosen.claims.job, self.resource, lasts)


class Precedence:
    """Lines of all jobs of a controller; `after` is `Policy.gang_precedence_after`."""

    def __init__(
        self,
        after: timedelta,
        requeue: Callable[[str], None],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create empty lines; `requeue` is called with the key of each job that is no longer held back."""
        self._after, self._requeue, self._now, self._clock = after, requeue, now, clock
        self._lines: dict[_Line, Line] = {}
        self._joined: dict[str, set[_Line]] = {}
        """Lines in which a job is, by its key."""

    def held_back_by(self, key: str, job: MXJob, observed: Observed) -> HeldBack | None:
        """Record what is observed of a job with this key; return the gang that comes before it."""
        claims = claimant(job, observed)
        self._update(key, claims)
        if claims is None or not claims.starts:
            return None
        now = self._clock()
        for resource in claims.amounts:
            line = self._lines.get((resource, claims.priority_classes))
            found = line.first(now) if line is not None else None
            if line is not None and found is not None and comes_before(found[0].claims, claims, resource):
                first, ends_at = found
                line.held.add(key)
                words = amount_in_words(first.claims, resource)
                return HeldBack(first.claims.job, words, first.since, timedelta(seconds=max(ends_at - now, 0.0)))
        return None

    def forget(self, key: str) -> None:
        """Drop a job that is deleted or can't be run."""
        self._update(key, None)

    def clear(self) -> None:
        """Drop everything: what follows is a new term of leadership."""
        self._lines.clear()
        self._joined.clear()

    def _update(self, key: str, claims: Claimant | None) -> None:
        since = claims.waits_since if claims is not None else None
        joined = self._joined.get(key, set())
        if claims is None or since is None:
            self._leave(key, joined)
            return
        outdated = {
            each
            for each in joined
            if each[1] != claims.priority_classes or self._lines[each].waiting[key].since != since
        }
        self._leave(key, outdated)
        for resource in claims.lacks:
            self._join(key, (resource, claims.priority_classes), claims, since)

    def _join(self, key: str, of: _Line, claims: Claimant, since: datetime) -> None:
        if of in self._joined.get(key, ()):
            return
        eligible_at = self._clock() + left_of(self._after, since, self._now()).total_seconds()
        line = self._lines.setdefault(of, Line(of[0], self._after))
        line.join(key, _Waiter(claims, since, eligible_at))
        self._joined.setdefault(key, set()).add(of)

    def _leave(self, key: str, lines: set[_Line]) -> None:
        for each in tuple(lines):
            line = self._lines[each]
            released = line.leave(key)
            self._joined[key].discard(each)
            if not line.waiting:
                del self._lines[each]
            for held in released:
                self._requeue(held)
        if not self._joined.get(key, True):
            del self._joined[key]
