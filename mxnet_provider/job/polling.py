"""Polls of a job: when the next one is due, and for how long an API server that is away is borne; for every wait.

Pure but for clock and chance: who polls says what each poll came to, and waits for `pause` until the next.
"""

import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_provider.hooks.api_errors import is_transient, message, refusal

_JITTER: Final = 0.2
_SOON: Final = 4.0
"""With the jitter, and the time that a poll takes, within five seconds."""
_LONGEST_PAUSE: Final = 60.0
_DOUBLINGS: Final = 16
"""Of the pause: enough for the longest of any `poll_interval`, and few enough for a float."""


class Polling:
    """State of the waiting: who polls says what each poll came to, and waits for `pause` until the next.

    Args:
        poll_interval: Seconds between two polls of a job that just runs, give or take a fifth.
        api_outage_tolerance: For how many seconds the API server may be away.
        warn: Called with a format and an argument, once in each outage.
        lease: Seconds of the job's lease, which runs on while the API server is away, as far as this process knows:
            the pauses are such that it is soon renewed after that. None for none.
        clock: Seconds, monotonic, for outages.
    """

    def __init__(
        self,
        poll_interval: float,
        api_outage_tolerance: float,
        *,
        warn: Callable[[str, str], object],
        lease: float | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.outage = Outage(api_outage_tolerance, clock)
        self.pause = 0.0
        """Seconds until the next poll."""
        self._poll_interval = poll_interval
        longest = _LONGEST_PAUSE if lease is None else min(_LONGEST_PAUSE, lease / 6)
        self._longest_pause = max(longest, poll_interval)
        self._warn = warn

    def answered(self, job: Mapping[str, Any] | None) -> None:
        """Take the job as it was just read; None where there is none."""
        self.outage.answered()
        self.pause = until_next_poll(job, self._poll_interval)

    def failed(self, error: Exception) -> Literal["refused", "error"] | None:
        """Take what a poll failed with, and return why to give up; None to poll again.

        Returns:
            `refused`: the API server rejects it; `error`: it has been away for too long.

        Raises:
            Exception: the error, where it is neither an outage nor an answer of an API server.
        """
        if not is_transient(error):
            if refusal(error) is None:
                raise error
            return "refused"
        if self.outage.lasts_too_long():
            return "error"
        failures = self.outage.failures
        if failures == 1:
            self._warn("The API server can't be reached, and it is waited for: %s", message(error))
        grown = self._poll_interval * 2 ** min(failures, _DOUBLINGS)
        self.pause = with_jitter(min(grown, self._longest_pause))
        return None


class Outage:
    """Time since the API server's last answer.

    Args:
        tolerance: For how many seconds it may be away.
        clock: Seconds, monotonic.
    """

    def __init__(self, tolerance: float, clock: Callable[[], float] | None = None) -> None:
        self.failures = 0
        """How many requests have failed since the last answer."""
        self.away = 0.0
        """Seconds from the last answer to the last failure."""
        self.longest = 0.0
        self._tolerance = tolerance
        self._clock = clock or time.monotonic
        self._last_answer = self._clock()

    def answered(self) -> None:
        """Note that the server is there: what comes next is another outage."""
        self.failures = 0
        self._last_answer = self._clock()

    def lasts_too_long(self) -> bool:
        """Note that a request failed, and tell whether to give up."""
        self.failures += 1
        self.away = self._clock() - self._last_answer
        self.longest = max(self.longest, self.away)
        return self.away > self._tolerance


def until_next_poll(job: Mapping[str, Any] | None, poll_interval: float) -> float:
    """Seconds until the next poll: sooner than `poll_interval` where a user may wonder what the job waits for.

    Args:
        job: The job as it was just read; None where there is none.
        poll_interval: Seconds between two polls of a job that just runs, give or take a fifth.
    """
    calm = job is None or (job_state(job) == RUNNING and not waiting_reasons(job))
    return with_jitter(poll_interval if calm else min(poll_interval, _SOON))


def with_jitter(seconds: float) -> float:
    """Give or take a fifth, so that many tasks that began at once spread out."""
    return seconds * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - no secret depends on it
