"""Early exits: schedulers and servers that exit with 0 while Workers still need them (their image starts a shell, say).

Schedulers and servers of ps-lite and TVM never exit first, so Workers probably wait for them for ever. A smoke test, of
which every replica exits at once, is no early exit: a minute later no replica runs any more.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import Condition
from mxnet_operator.plan.replicas import Outcome, Replica, is_tuning, labels, those
from mxnet_operator.plan.waits import left_of

SAID_AFTER: Final = timedelta(minutes=1)
AT_ONCE: Final = timedelta(seconds=2)
"""Time after the last start within which an exit is early: importing MXNet alone takes as long."""


class EarlyExit(msgspec.Struct, frozen=True):
    """Serving replicas that have exited too early, and the replicas that still run and need them."""

    exited: tuple[Replica, ...]
    waiting: tuple[Replica, ...]
    since: datetime
    """Time at which the last server exited, or the last replica that needs them started."""

    @property
    def message(self) -> str:
        """Message of the condition: what happened, and what to check."""
        types = " and ".join(dict.fromkeys(replica.type for replica in self.exited))
        task = "tuning" if is_tuning(self.waiting) else "training"
        waits = "probably waits" if len(self.waiting) == 1 else "probably wait"
        return (
            f"{labels(self.exited)} exited with code 0 before any {task} could begin: {labels(self.waiting)} {waits}"
            f" for ever. Check the command and the image of the {types}."
        )


def early_exit(replicas: tuple[Replica, ...]) -> EarlyExit | None:
    """Return the exits that came too early while replicas that need them still run; None without."""
    tunes = is_tuning(replicas)
    working = those(replicas, lambda each: each.works and each.tunes == tunes)
    waiting = tuple(replica for replica in working if replica.outcome is Outcome.RUNNING)
    exited = tuple(replica for replica in those(replicas, lambda each: each.serves) if _is_early(replica, working))
    if not waiting or not exited:
        return None
    ends = (replica.pod.finished_at for replica in exited if replica.pod is not None)
    starts = (replica.pod.started_at for replica in waiting if replica.pod is not None)
    return EarlyExit(exited, waiting, max(time for time in (*ends, *starts) if time is not None))


def with_servers_exited(
    current: tuple[Condition, ...], replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with ServersExited: True from a minute after such exits, False once nothing needs them."""
    found = early_exit(replicas)
    if found is None:
        return conditions.set_false(
            current,
            conditions.SERVERS_EXITED,
            conditions.SERVERS_EXITED,
            "No running replica needs one that has exited.",
            now,
        )
    if conditions.is_true(current, conditions.SERVERS_EXITED) or left_of(SAID_AFTER, found.since, now):
        return current
    return conditions.set_condition(
        current, conditions.SERVERS_EXITED, conditions.REASON_EXITED_EARLY, found.message, now
    )


def time_until_said(replicas: tuple[Replica, ...], now: datetime) -> timedelta | None:
    """Return when to requeue the job for the condition; None where no time is pending."""
    found = early_exit(replicas)
    return None if found is None else left_of(SAID_AFTER, found.since, now) or None


def _is_early(replica: Replica, working: tuple[Replica, ...]) -> bool:
    """Return whether it exited before all that need it had started, or as soon as they and it itself had."""
    pod = replica.pod
    if replica.outcome is not Outcome.DONE or pod is None or pod.finished_at is None:
        return False
    if not all(each.started for each in working):
        return True
    starts = [pod.started_at, *(each.pod.started_at for each in working if each.pod is not None)]
    known = [time for time in starts if time is not None]
    return bool(known) and pod.finished_at <= max(known) + AT_ONCE
