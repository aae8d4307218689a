"""Schedulers and servers that exit with 0 before there was anything to serve: their image starts a shell, say.

Those of ps-lite and TVM never do, so whoever needs them probably waits for ever. A smoke test, of which every replica
exits at once, is none: a minute later nobody runs any more.
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
"""After all have started: importing MXNet alone takes as long, and timestamps are whole seconds."""


class EarlyExit(msgspec.Struct, frozen=True):
    """Serving replicas that have exited too early, and those that still run and need them."""

    exited: tuple[Replica, ...]
    waiting: tuple[Replica, ...]
    since: datetime
    """When the last of the first exited, or the last of the second started."""

    @property
    def message(self) -> str:
        """What happened, and what to look at."""
        types = " and ".join(dict.fromkeys(replica.type for replica in self.exited))
        task = "tuning" if is_tuning(self.waiting) else "training"
        waits = "probably waits" if len(self.waiting) == 1 else "probably wait"
        return (
            f"{labels(self.exited)} exited with code 0 before any {task} could begin: {labels(self.waiting)} {waits}"
            f" for ever. Check the command and the image of the {types}."
        )


def early_exit(replicas: tuple[Replica, ...]) -> EarlyExit | None:
    """The exits that came too early, while somebody still runs who needs what exited; None without."""
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
    """The conditions with ServersExited true from a minute after such exits on, and false once nobody waits."""
    found = early_exit(replicas)
    if found is None:
        return conditions.set_false(
            current, conditions.SERVERS_EXITED, conditions.SERVERS_EXITED, "Nobody waits for them.", now
        )
    if conditions.is_true(current, conditions.SERVERS_EXITED) or left_of(SAID_AFTER, found.since, now):
        return current
    return conditions.set_condition(
        current, conditions.SERVERS_EXITED, conditions.REASON_EXITED_EARLY, found.message, now
    )


def time_until_said(replicas: tuple[Replica, ...], now: datetime) -> timedelta | None:
    """When to look again for the condition; None where there is nothing to wait for."""
    found = early_exit(replicas)
    return None if found is None else left_of(SAID_AFTER, found.since, now) or None


def _is_early(replica: Replica, working: tuple[Replica, ...]) -> bool:
    """Whether it was done before all who need it had started, or as soon as they and it itself had."""
    pod = replica.pod
    if replica.outcome is not Outcome.DONE or pod is None or pod.finished_at is None:
        return False
    if not all(each.started for each in working):
        return True
    starts = [pod.started_at, *(each.pod.started_at for each in working if each.pod is not None)]
    known = [time for time in starts if time is not None]
    return bool(known) and pod.finished_at <= max(known) + AT_ONCE
