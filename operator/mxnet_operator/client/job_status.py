"""Status of a job for the program that submitted it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from mxnet_operator.api.conditions import SUCCEEDED, TERMINAL, job_state, terminal_message
from mxnet_operator.api.storable import json_or_text
from mxnet_operator.readers.durations import seconds_between
from mxnet_operator.readers.long_result import reference_in


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of a job. Times are in RFC 3339."""

    name: str
    namespace: str
    uid: str
    state: str
    """Created, Running, Restarting, Suspended, Succeeded or Failed; empty until the controller has accepted it."""
    message: str = ""
    """Why and how the job ended; empty while it runs."""
    started_at: str | None = None
    completed_at: str | None = None
    duration_s: float | None = None
    result: Any = None
    """What Worker 0 (in tuning, the Tuner) wrote to /dev/termination-log: parsed JSON, else text, or None."""
    lost_result: str = ""
    """Why `result` is missing: above 4 KiB it is in the pod's log, which is deleted with the pod."""

    @property
    def succeeded(self) -> bool:
        return self.state == SUCCEEDED

    @property
    def finished(self) -> bool:
        return self.state in TERMINAL


def status_of(job: Mapping[str, Any]) -> JobStatus:
    """Decode the status of a job in v1's words, as a server returned it."""
    metadata, status = job["metadata"], job.get("status") or {}
    started, completed = status.get("startTime"), status.get("completionTime")
    state, elsewhere = job_state(job), reference_in(job)
    text = None if elsewhere else status.get("result")
    return JobStatus(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        state=state,
        message=terminal_message(job) if state in TERMINAL else "",
        started_at=started,
        completed_at=completed,
        duration_s=seconds_between(started, completed),
        result=json_or_text(text) if text else None,
        lost_result=elsewhere.loss if elsewhere else "",
    )
