"""Pauses between two polls of a job, and between tries while the API server is away, for every wait."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.client.outage import Outage, Retries, with_jitter
from mxnet_operator.readers.waiting import waiting_reasons

JITTER: Final = 0.2
_SOON: Final = 4.0
"""With the jitter, and the time that a poll takes, within five seconds."""
_LONGEST_PAUSE: Final = 60.0


def retries_of_polls(
    poll_interval: float,
    api_outage_tolerance: float,
    *,
    warn: Callable[[str, str], object],
    lease: float | None = None,
) -> Retries:
    """Return the retries of a wait that polls; `warn` gets a format and an argument as an outage begins and ends.

    The job's lease (seconds) runs on while the API server is away: the pauses are such that it is soon renewed after
    that.
    """
    outage = Outage(api_outage_tolerance, say=lambda text: warn("%s", f"{text[0].upper()}{text[1:]}"))
    longest = _LONGEST_PAUSE if lease is None else min(_LONGEST_PAUSE, lease / 6)
    return Retries(outage, first=2 * poll_interval, longest=max(longest, poll_interval), jitter=JITTER)


def until_next_poll(job: Mapping[str, Any] | None, poll_interval: float) -> float:
    """Seconds until the next poll: sooner than `poll_interval` where a user may wonder what the job waits for."""
    calm = job is None or (job_state(job) == RUNNING and not waiting_reasons(job))
    return with_jitter(poll_interval if calm else min(poll_interval, _SOON), JITTER)
