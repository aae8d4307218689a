"""Outages of an API server, for everyone who follows a job: how long it has not been heard, and when to give up."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar

from mxnet_operator.kube.errors import ApiError, ApiUnavailable

OF_THE_SERVER: Final = (ApiError, ApiUnavailable, TimeoutError, ConnectionError)
"""What a request raises that the API server rejects or does not answer, and no mistake of the caller's."""

RETRY_SECONDS: Final = 60.0
"""Seconds for which a server that doesn't answer is asked again before giving up."""
LOG_SILENCE_SECONDS: Final = 60.0
"""Seconds without a byte after which a followed log is opened anew: it may be quiet, or its connection dead."""
READ_SILENCE_SECONDS: Final = 30.0
"""Seconds without a byte after which the reading of a log that isn't followed fails."""

_LONGEST_RETRY_AFTER: Final = 30.0
"""Seconds of a Retry-After header that are obeyed."""
_TOO_MANY_REQUESTS: Final = 429
_LONGEST_REASON: Final = 120


T = TypeVar("T")


@dataclass
class Outage:
    """Time since an API server was last heard: any byte of a list, a watch, a log or a bookmark.

    A connection that ends was alive until then, and one that turns out to be silent says nothing about the server. So
    the time counts from there, and only requests that fail make it an outage. Followers of one job share an outage.
    """

    tolerance: float = RETRY_SECONDS
    """Seconds for which the server may be away."""
    clock: Callable[[], float] | None = None
    """Seconds, monotonic."""
    _: KW_ONLY
    say: Callable[[str], object] = lambda _: None
    """Called once when an outage begins, and once when the server is back."""
    now: Callable[[], datetime] = datetime.now
    """Local time, for what is said."""
    failures: int = field(default=0, init=False)
    """Number of requests that have failed since the server was last heard."""
    away: float = field(default=0.0, init=False)
    """Seconds from when the server was last heard to the last failure."""
    longest: float = field(default=0.0, init=False)
    """Longest time in seconds for which the server was away."""

    def __post_init__(self) -> None:
        self._clock = self.clock or time.monotonic
        self._is_said = False
        self._since = self._clock()

    def heard(self) -> None:
        if self._is_said:
            self.say(f"the API server is back after {self._clock() - self._since:.0f} s")
        self.failures, self._is_said = 0, False
        self._since = self._clock()

    def disconnected(self) -> None:
        """Note that a connection has ended, or was found to be dead: whether the server is there is asked next."""
        if not self.failures:
            self._since = self._clock()

    def lasts_too_long(self, error: Exception) -> bool:
        """Note that a request failed, and return whether to give up.

        A 429 is an answer of a server that is there, and never a reason to.
        """
        now = self._clock()
        if isinstance(error, ApiError) and error.code == _TOO_MANY_REQUESTS:
            self.failures, self._since = self.failures + 1, now
            return False
        self.away = now - self._since
        self.longest = max(self.longest, self.away)
        self.failures += 1
        if self.away > self.tolerance:
            return True
        if not self._is_said:
            self._is_said = True
            until = _time_of_day(self.now(), self.tolerance - self.away)
            self.say(f"the API server doesn't answer; trying until {until} ({_reason(error)})")
        return False


@dataclass
class Retries:
    """Pauses of one follower in an outage, doubled from one to the next until the server answers."""

    outage: Outage
    sleep: Callable[[float], Awaitable[None]] | None = None
    _: KW_ONLY
    first: float = 0.5
    """Seconds of the first pause."""
    longest: float = 8.0
    """Seconds of the longest."""
    jitter: float = 0.0
    """Part of a pause by which it is longer or shorter, at random: many followers then spread out."""

    def __post_init__(self) -> None:
        self._next = min(self.first, self.longest)

    def answered(self) -> None:
        self.outage.heard()
        self._next = min(self.first, self.longest)

    async def until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer to a request, which is repeated in an outage.

        Raises:
            Exception: the last error of the request, where that is no outage, or the outage lasts too long.
        """
        while True:
            try:
                answer = await ask()
            except OF_THE_SERVER as error:
                await self.pause_or_raise(error)
            else:
                self.answered()
                return answer

    async def pause_or_raise(self, error: Exception, *, also: Collection[int] = ()) -> None:
        """Pause before a request is repeated; raise its error if the outage lasts too long, or another try is in vain.

        `also` are codes that pass although they aren't transient.
        """
        is_final = isinstance(error, ApiError) and not error.is_transient and error.code not in also
        if is_final or self.outage.lasts_too_long(error):
            raise error
        await self.pause(error)

    async def pause(self, error: Exception | None = None) -> None:
        """Pause: longer each time until the next answer, and at least for what the server asks for."""
        await (self.sleep or asyncio.sleep)(self.next_pause(error))

    def next_pause(self, error: Exception | None = None) -> float:
        asked_for = (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0
        seconds = max(self._next, min(asked_for, _LONGEST_RETRY_AFTER))
        self._next = min(self._next * 2, self.longest)
        return with_jitter(seconds, self.jitter)


def with_jitter(seconds: float, part: float) -> float:
    """Give or take a part of a time, at random, so that many tasks that began at once spread out."""
    return seconds * random.uniform(1 - part, 1 + part)  # noqa: S311 - no secret depends on it


def _time_of_day(now: datetime, seconds: float) -> str:
    until = now + timedelta(seconds=min(seconds, 10 * 365 * 86400))
    return f"{until:%H:%M:%S}" if until.date() == now.date() else f"{until:%Y-%m-%d %H:%M:%S}"


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + " ..."
