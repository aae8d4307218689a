"""Holder of a job: the fencing token that a try writes into it, and the lease that it renews. Pure.

Airflow gives up on a worker or triggerer that stands still, and lets another go on. When the first comes back, it must
not end the job that the other waits for: only whose token stands in the job may end it.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.api.job_lease import JobLease, LeaseAction, annotations_of

Holds = Callable[[str], bool]
"""Whether the token that stands in a job, empty for none, is one of the caller's."""

LOST: Final = "This process no longer holds %s: %s waits for it now."
"""What a task's log says, with the job and who holds it."""
NOT_RENEWED: Final = "The lease of %s could not be renewed, and the controller will end the job when it runs out: %s"
"""What a task's log says, with the job and the server's words."""

_RENEWALS: Final = 3
"""How often a lease is renewed within its duration."""


class Lease(msgspec.Struct, frozen=True):
    """The lease that a job is to carry."""

    seconds: int
    action: LeaseAction


def token_of_try(try_number: int, try_id: UUID | str) -> str:
    """Return the token of a try: Airflow makes a new id for each, which a deferral keeps, and which sorts by time."""
    return f"{try_number}:{try_id}"


def token_of_run(of_try: str, run: str) -> str:
    """Return the token of one run of a trigger, of which there may be two at a time, on two triggerers."""
    return f"{of_try}:{run}"


def holder_of(job: Mapping[str, Any]) -> str:
    """Return the token that stands in the job; empty where there is none."""
    return str(((job.get("metadata") or {}).get("annotations") or {}).get(names.HOLDER_ANNOTATION) or "")


def try_of(token: str) -> str:
    return ":".join(token.split(":")[:2])


def is_of_worker(token: str) -> bool:
    """Whether a try has written the token in a worker, and not in a trigger."""
    return token.count(":") == 1


def title_of(token: str) -> str:
    return f"try {token.partition(':')[0]} of its task" if ":" in token else (token or "nobody")


def is_newer(token: str, than: str) -> bool:
    """Whether a token is of a later try of the task; what no try has written is of none."""
    found, own = _read(token), _read(than)
    return found is not None and own is not None and found > own


def held_by_try(of_try: str | None) -> Holds:
    """Return what a try may end: what it holds itself, or a trigger of it, and jobs in which there is no token."""
    return lambda holder_token: holder_token == "" or (of_try is not None and _is_of(holder_token, of_try))


def held_exactly_by(*tokens: str | None) -> Holds:
    """Return what one run of a trigger may end: what it holds itself, and jobs in which there is no token."""
    return lambda holder_token: holder_token == "" or holder_token in tokens


def annotations(token: str, lease: Lease | None, now: datetime) -> dict[str, str]:
    """Return the annotations of a job that is held, for its creation."""
    if lease is None:
        return {names.HOLDER_ANNOTATION: token}
    renewed = now.isoformat(timespec="milliseconds")
    return annotations_of(JobLease(lease.seconds, lease.action, token, renewed))


def claim(job: Mapping[str, Any], token: str, lease: Lease | None, now: datetime) -> dict[str, Any]:
    """Return the patch that takes the job in hand, or renews its lease, if it has not changed since it was read."""
    none = dict.fromkeys(
        (names.LEASE_DURATION_ANNOTATION, names.LEASE_ACTION_ANNOTATION, names.LEASE_RENEW_TIME_ANNOTATION)
    )
    return {
        "metadata": {
            "resourceVersion": job["metadata"]["resourceVersion"],
            "annotations": {**(none if lease is None else {}), **annotations(token, lease, now)},
        }
    }


@dataclass
class LeaseRenewer:
    """One process's hold on a job for as long as it waits: what it has to write into the job, and when."""

    token: str
    """What this process writes."""
    of_try: str
    """The token of its try, whose hold it may take over."""
    lease: Lease | None
    _: KW_ONLY
    is_written: InitVar[bool]
    """Whether the token stands in the job already."""
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """The time that is written into the job, for people."""
    lost_to: str = field(default="", init=False)
    """Whose token was found in place of this one; nothing is written from then on."""

    def __post_init__(self, is_written: bool) -> None:
        self._renewed = self.clock() if is_written else None
        self._gave_up = False

    def due(self, job: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the patch to send now to the job as it was just read; None for none."""
        holder_token = holder_of(job)
        if self._gave_up or self.lost_to or not holder_token:
            return None
        if job_state(job) in TERMINAL or job["metadata"].get("deletionTimestamp"):
            return None
        is_ours = holder_token == self.token if self._renewed is not None else _is_of(holder_token, self.of_try)
        if not is_ours:
            self.lost_to = holder_token
            return None
        if self._renewed is not None:
            next_renewal = math.inf if self.lease is None else self._renewed + self.lease.seconds / _RENEWALS
            if self.clock() < next_renewal:
                return None
        return claim(job, self.token, self.lease, self.now())

    def written(self) -> None:
        self._renewed = self.clock()

    def give_up(self) -> None:
        """Write nothing any more: the account has no right to."""
        self._gave_up = True


def _is_of(token: str, of_try: str) -> bool:
    return token == of_try or token.startswith(f"{of_try}:")


def _read(token: str) -> tuple[int, str] | None:
    number, _, rest = token.partition(":")
    return (int(number), rest.partition(":")[0]) if number.isdecimal() and rest else None
