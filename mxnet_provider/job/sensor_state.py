"""State of a sensor after it has read its job: pure, the same for workers and triggers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from mxnet_operator.api.conditions import job_state, terminal_message
from mxnet_operator.api.storable import storable

VERSION: Final = 1


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """Decision of a sensor on the job as it was read."""

    status: Literal["reached", "failed", "missing", "refused", "error"]
    state: str = ""
    uid: str = ""
    message: str = ""
    v: int = VERSION

    def payload(self) -> dict[str, Any]:
        """Return the outcome as a trigger's event: only what Airflow's database takes."""
        payload: dict[str, Any] = storable(msgspec.to_builtins(self))
        return payload


def settled(
    job: Mapping[str, Any] | None, *, target_states: Sequence[str], fail_states: Sequence[str], missing_ok: bool
) -> Sight | None:
    """Whether a sensor need not wait any more: pure, the same for workers and triggers. None to wait."""
    if job is None:
        return None if missing_ok else Sight(status="missing")
    state, uid = job_state(job), job["metadata"]["uid"]
    if state in target_states:
        return Sight(status="reached", state=state, uid=uid)
    if state in fail_states:
        return Sight(status="failed", state=state, uid=uid, message=terminal_message(job))
    return None
