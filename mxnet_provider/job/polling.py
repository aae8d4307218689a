"""Pauses between two polls of a job, and between tries while the API server is away, for every wait."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.client.outage import Outage, Retries, with_jitter
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_provider.hooks.api_errors import is_transient

JITTER: Final = 0.2
_SOON: Final = 4.0
"""With the jitter, and the time that a poll takes, within five seconds."""
_LONGEST_PAUSE: Final = 60.0

T = TypeVar("T")


async def through_outage(retries: Retries, read: Callable[[], Awaitable[T]]) -> T:
    """Return what `read` does, and call it again while the API server is away, or Airflow's own.

    Raises:
        Exception: what `read` raised last, where that is no outage, or lasts too long.
    """
    while True:
        try:
            found = await read()
        except Exception as e:
            if not is_transient(e):
                raise
            await retries.pause_or_raise(e)
        else:
            retries.answered()
            return found


def retries_of_polls(
    poll_interval: float,
    api_outage_tolerance: float,
    *,
    warn: Callable[[str, str], object],
    lease: float | None = None,
) -> Retries:
    """Return the retries of a wait that polls.

    Args:
        poll_interval: Seconds between two polls of a job that just runs, give or take a fifth.
        api_outage_tolerance: For how many seconds the API server may be away.
        warn: Called with a format and an argument, when an outage begins and when it ends.
        lease: Seconds of the job's lease, which runs on while the API server is away, as far as this process knows:
            the pauses are such that it is soon renewed after that. None for none.
    """
    outage = Outage(api_outage_tolerance, say=lambda text: warn("%s", f"{text[0].upper()}{text[1:]}"))
    longest = _LONGEST_PAUSE if lease is None else min(_LONGEST_PAUSE, lease / 6)
    return Retries(outage, first=2 * poll_interval, longest=max(longest, poll_interval), jitter=JITTER)


def until_next_poll(job: Mapping[str, Any] | None, poll_interval: float) -> float:
    """Seconds until the next poll: sooner than `poll_interval` where a user may wonder what the job waits for.

    Args:
        job: The job as it was just read; None where there is none.
        poll_interval: Seconds between two polls of a job that just runs, give or take a fifth.
    """
    calm = job is None or (job_state(job) == RUNNING and not waiting_reasons(job))
    return with_jitter(poll_interval if calm else min(poll_interval, _SOON), JITTER)
