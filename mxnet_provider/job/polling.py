"""Polls of a job: when the next one is due, and for how long an API server that is away is borne; for every wait.

Pure but for clock and chance: who polls says what each poll came to, and waits for `pause` until the next.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.client.outage import Outage, seconds_asked_for
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_provider.hooks.api_errors import is_transient, refusal

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
        warn: Called with a format and an argument, when an outage begins and when it ends.
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
        self.outage = Outage(api_outage_tolerance, clock, say=lambda text: warn("%s", f"{text[0].upper()}{text[1:]}"))
        self.pause = 0.0
        """Seconds until the next poll."""
        self._poll_interval = poll_interval
        longest = _LONGEST_PAUSE if lease is None else min(_LONGEST_PAUSE, lease / 6)
        self._longest_pause = max(longest, poll_interval)

    def answered(self, job: Mapping[str, Any] | None) -> None:
        """Take the job as it was just read; None where there is none."""
        self.outage.heard()
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
        if self.outage.lasts_too_long(error):
            return "error"
        grown = self._poll_interval * 2 ** min(self.outage.failures, _DOUBLINGS)
        self.pause = with_jitter(max(min(grown, self._longest_pause), seconds_asked_for(error)))
        return None


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
