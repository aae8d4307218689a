"""Decision of a sensor on the job that it has read: pure, the same for workers and triggers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from mxnet_operator.api.conditions import CREATED, RUNNING, SUCCEEDED, job_state, terminal_message
from mxnet_operator.api.job_url import job_page
from mxnet_provider.hooks.api_errors import is_transient, message
from mxnet_provider.job.event import Stored

VERSION: Final = 1
_BEHIND: Final = {RUNNING: (CREATED,), SUCCEEDED: (CREATED, RUNNING)}
"""States that a job of some state was in before: a short job may be in them between two polls only."""


class SensorEvent(Stored, frozen=True, kw_only=True):
    """Reason why a sensor need not wait any more, and the job's state as it was read."""

    status: Literal["reached", "failed", "missing", "refused", "error"]
    state: str = ""
    uid: str = ""
    message: str = ""
    page: str = ""
    """Address of the job's page, as its status gives it."""
    v: int = VERSION

    @classmethod
    def of_error(cls, e: Exception) -> "SensorEvent":
        """Return the event of a request that the API server rejects, or did not answer for too long."""
        return cls(status="error" if is_transient(e) else "refused", message=message(e))


def settled(
    job: Mapping[str, Any] | None, *, target_states: Sequence[str], fail_states: Sequence[str], missing_ok: bool
) -> SensorEvent | None:
    """Return why a sensor need not wait any more; None to wait. A job that has Succeeded was Running before."""
    if job is None:
        return None if missing_ok else SensorEvent(status="missing")
    state, uid, page = job_state(job), job["metadata"]["uid"], job_page(job)
    if state in target_states:
        return SensorEvent(status="reached", state=state, uid=uid, page=page)
    if state in fail_states:
        return SensorEvent(status="failed", state=state, uid=uid, message=terminal_message(job), page=page)
    if any(each in target_states for each in _BEHIND.get(state, ())):
        return SensorEvent(status="reached", state=state, uid=uid, page=page)
    return None
