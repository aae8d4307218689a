"""Scheduler grace period: a Scheduler that outlives all Workers is stopped, and the job succeeds without it.

Its Workers' script never made a `dist_*` kvstore, which would end the Scheduler, or ps-lite hangs as it ends.
"""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import Condition, MXJob
from mxnet_operator.plan.replicas import Outcome, Replica, is_tuning, labels, of_types
from mxnet_operator.plan.waits import left_of

GRACE: Final = timedelta(minutes=1)
SAID_AFTER: Final = timedelta(seconds=5)
"""Time by which the report of a Scheduler's end may follow that of the Workers' ends."""
WORDS: Final = "workers finished without a distributed kvstore?"


def scheduler_left(job: MXJob, replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
    """Return the Scheduler of a job whose Workers are all done, where success still waits for it; else nothing."""
    if not _workers_are_done(replicas) or job.spec.success_policy == "AllWorkers":
        return ()
    left = of_types(replicas, names.SCHEDULER)
    return tuple(replica for replica in left if replica.outcome in (Outcome.MISSING, Outcome.WAITING, Outcome.RUNNING))


def success_is_known(job: MXJob, replicas: tuple[Replica, ...]) -> bool:
    """Return whether all Workers are done and no replica failed: what stops the job now doesn't take its success back.

    Stops are a deadline, an expired lease, a suspension, an eviction from a queue, and pods that were deleted or lost.
    """
    has_failed = any(replica.outcome is Outcome.FAILED for replica in replicas)
    return _workers_are_done(replicas) and not has_failed and job.spec.success_policy != "Scheduler"


def has_outlived_grace(job: MXJob, replicas: tuple[Replica, ...], now: datetime) -> bool:
    """Return whether the job has succeeded though its Scheduler runs; never where successPolicy names the Scheduler."""
    if job.spec.success_policy == "Scheduler" or not scheduler_left(job, replicas):
        return False
    return not left_of(GRACE, _workers_done_at(replicas), now)


def with_scheduler_left(
    current: tuple[Condition, ...], job: MXJob, replicas: tuple[Replica, ...], now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions with SchedulerStillRunning: True while the Scheduler outlives the Workers."""
    left = scheduler_left(job, replicas)
    if not left:
        return conditions.set_false(
            current, conditions.SCHEDULER_LEFT, conditions.SCHEDULER_LEFT, "No Scheduler outlives its Workers.", now
        )
    if left_of(SAID_AFTER, _workers_done_at(replicas), now):
        return current
    if job.spec.success_policy == "Scheduler":
        then = "successPolicy Scheduler waits for it until a deadline."
    else:
        earlier = ", or when activeDeadlineSeconds is over" if job.spec.run_policy.active_deadline_seconds else ""
        then = f"The job succeeds {GRACE.seconds} s after the last Worker{earlier}."
    message = f"All Workers exited with code 0 and {labels(left)} goes on: {WORDS} {then}"
    return conditions.set_condition(current, conditions.SCHEDULER_LEFT, conditions.REASON_NO_KVSTORE, message, now)


def stopped_words(job: MXJob, replicas: tuple[Replica, ...], now: datetime) -> str:
    """Return the message about the Scheduler that a succeeding job stops; empty where it has ended."""
    left = scheduler_left(job, replicas)
    if not left or job.spec.success_policy == "Scheduler":
        return ""
    waited = max(GRACE - left_of(GRACE, _workers_done_at(replicas), now), timedelta(0)).seconds
    return f"{labels(left)} went on for {waited} s after the last Worker and is stopped: {WORDS}"


def time_until_next(job: MXJob, replicas: tuple[Replica, ...], now: datetime) -> timedelta | None:
    """Return when to requeue the job for the condition, then for the success; None where no time is pending."""
    if not scheduler_left(job, replicas):
        return None
    since = _workers_done_at(replicas)
    return left_of(SAID_AFTER, since, now) or left_of(GRACE, since, now) or None


def _workers_are_done(replicas: tuple[Replica, ...]) -> bool:
    """Return whether every Worker is done; a job that tunes has none that counts."""
    workers = of_types(replicas, names.WORKER)
    return bool(workers) and all(each.outcome is Outcome.DONE for each in workers) and not is_tuning(replicas)


def _workers_done_at(replicas: tuple[Replica, ...]) -> datetime | None:
    """Return when the last Worker ended; None where no pod says."""
    ends = (worker.pod.finished_at for worker in of_types(replicas, names.WORKER) if worker.pod is not None)
    return max((end for end in ends if end is not None), default=None)
