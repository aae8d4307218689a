"""Success: when a job has succeeded, its result, and servers that exit too early or a Scheduler that exits too late.

The default waits for the Scheduler and every Worker: a scheduler exits 0 a moment before the workers do, and even when
the only worker failed (`docs/facts/mxnet.md`), so it can't decide alone as it did in the documents.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MAX_RESULT, MXJob
from mxnet_operator.plan.actions import Effects, Failure, Success
from mxnet_operator.plan.replicas import Replica, ReplicaState, is_tuning, labels, of_types, replicas_whose
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import left_of

EARLY_EXIT_SAID_AFTER: Final = timedelta(minutes=1)
AT_ONCE: Final = timedelta(seconds=2)
"""Time after the last start within which an exit is early: importing MXNet alone takes as long."""
SCHEDULER_GRACE: Final = timedelta(minutes=1)
_SCHEDULER_SAID_AFTER: Final = timedelta(seconds=5)
"""Time by which the report of a Scheduler's end may follow that of the Workers' ends."""
WORDS: Final = "workers finished without a distributed kvstore?"


def success(state: JobState) -> Success | Effects:
    """Return the job's success, once it has succeeded and no failed replica is final."""
    policy, is_final = state.job.spec.success_policy, isinstance(state.attempt_end, Failure)
    is_done = all(replica.state is ReplicaState.DONE for replica in _deciding(policy, state.replicas))
    return Success() if (is_done or _has_outlived_grace(state)) and not is_final else Effects()


def success_is_known(state: JobState) -> bool:
    """Return whether all Workers are done and no replica failed: what stops the job now doesn't take its success back.

    Stops are a deadline, an expired lease, a suspension, an eviction from a queue, and pods that were deleted or lost.
    """
    has_failed = any(replica.state is ReplicaState.FAILED for replica in state.replicas)
    return _workers_are_done(state.replicas) and not has_failed and state.job.spec.success_policy != "Scheduler"


def result_of(replicas: Iterable[Replica]) -> str:
    """Return the termination message of Worker 0, or of the Tuner, once it is done; empty before, or where it has none.

    In the status it outlives the pod, and a workflow step that reads one object has it too.
    """
    for replica in replicas:
        if TYPES[replica.type].reports_result and replica.index == 0 and replica.state is ReplicaState.DONE:
            return replica.pod.message[:MAX_RESULT] if replica.pod is not None else ""
    return ""


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


def early_exits(state: JobState) -> Effects:
    """Report ServersExited: True from a minute after schedulers or servers exited with 0 while Workers need them.

    Schedulers and servers of ps-lite and TVM never exit first (their image starts a shell, say), so Workers probably
    wait for them for ever. A smoke test, of which every replica exits at once, is no early exit: a minute later no
    replica runs any more.
    """
    found = early_exit(state.replicas)
    if found is None:
        words = "No running replica needs one that has exited."
        return state.no_longer(conditions.SERVERS_EXITED, conditions.SERVERS_EXITED, words)
    left = left_of(EARLY_EXIT_SAID_AFTER, found.since, state.now) or None
    if left or conditions.is_true(state.job.status.conditions, conditions.SERVERS_EXITED):
        return Effects(requeue_after=left)
    return state.warn(conditions.SERVERS_EXITED, conditions.REASON_EXITED_EARLY, found.message)


def early_exit(replicas: tuple[Replica, ...]) -> EarlyExit | None:
    """Return the exits that came too early while replicas that need them still run; None without."""
    tunes = is_tuning(replicas)
    working = replicas_whose(replicas, lambda each: each.works and each.tunes == tunes)
    waiting = tuple(replica for replica in working if replica.state is ReplicaState.RUNNING)
    exited = tuple(
        replica for replica in replicas_whose(replicas, lambda each: each.serves) if _is_early(replica, working)
    )
    if not waiting or not exited:
        return None
    ends = (replica.pod.finished_at for replica in exited if replica.pod is not None)
    starts = (replica.pod.started_at for replica in waiting if replica.pod is not None)
    return EarlyExit(exited, waiting, max(time for time in (*ends, *starts) if time is not None))


def scheduler_grace(state: JobState) -> Effects:
    """Report SchedulerStillRunning: True while the Scheduler outlives all Workers; the job then succeeds without it.

    The Workers' script never made a `dist_*` kvstore, which would end the Scheduler, or ps-lite hangs as it ends.
    """
    job, replicas, now = state.job, state.replicas, state.now
    left = scheduler_left(job, replicas)
    if not left:
        words = "No Scheduler outlives its Workers."
        return state.no_longer(conditions.SCHEDULER_STILL_RUNNING, conditions.SCHEDULER_STILL_RUNNING, words)
    since = _workers_done_at(replicas)
    if wait := left_of(_SCHEDULER_SAID_AFTER, since, now):
        return Effects(requeue_after=wait)
    if job.spec.success_policy == "Scheduler":
        then = "successPolicy Scheduler waits for it until a deadline."
    else:
        earlier = ", or when activeDeadlineSeconds is over" if job.spec.run_policy.active_deadline_seconds else ""
        then = f"The job succeeds {SCHEDULER_GRACE.seconds} s after the last Worker{earlier}."
    message = f"All Workers exited with code 0 and {labels(left)} goes on: {WORDS} {then}"
    warned = state.warn(conditions.SCHEDULER_STILL_RUNNING, conditions.REASON_NO_KVSTORE, message)
    return warned + Effects(requeue_after=left_of(SCHEDULER_GRACE, since, now) or None)


def scheduler_left(job: MXJob, replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
    """Return the Scheduler of a job whose Workers are all done, where success still waits for it; else nothing."""
    if not _workers_are_done(replicas) or job.spec.success_policy == "AllWorkers":
        return ()
    left = of_types(replicas, names.SCHEDULER)
    return tuple(
        replica
        for replica in left
        if replica.state in (ReplicaState.MISSING, ReplicaState.WAITING, ReplicaState.RUNNING)
    )


def stopped_words(job: MXJob, replicas: tuple[Replica, ...], now: datetime) -> str:
    """Return the message about the Scheduler that a succeeding job stops; empty where it has ended."""
    left = scheduler_left(job, replicas)
    if not left or job.spec.success_policy == "Scheduler":
        return ""
    waited = max(SCHEDULER_GRACE - left_of(SCHEDULER_GRACE, _workers_done_at(replicas), now), timedelta(0)).seconds
    return f"{labels(left)} went on for {waited} s after the last Worker and is stopped: {WORDS}"


def without_servers(replicas: tuple[Replica, ...]) -> str:
    """Return the message that a tuner waits in vain, with the TunerServers that don't run; else empty.

    TVM's tuner asks the tracker for a server without end when none can measure.
    """
    servers = of_types(replicas, names.TUNER_SERVER)
    if not is_tuning(replicas) or any(server.state is ReplicaState.RUNNING for server in servers):
        return ""
    text = "no TunerServer was running, and a tuner waits for one without end"
    if not servers:
        return f"{text} (the job asks for none)"
    reasons = (server.pod.waiting_reason for server in servers if server.pod and server.pod.waiting_reason)
    first, reason = servers[0], next(reasons, "")
    return f"{text} ({first.label}: {reason or first.state.value})"


def _deciding(policy: str | None, replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
    if is_tuning(replicas):
        return replicas_whose(replicas, lambda each: each.decides and each.tunes)
    named = {"Scheduler": names.SCHEDULER, "AllWorkers": names.WORKER}.get(policy or "", "")
    return (
        of_types(replicas, named) or replicas_whose(replicas, lambda each: each.decides and not each.tunes) or replicas
    )


def _is_early(replica: Replica, working: tuple[Replica, ...]) -> bool:
    """Return whether it exited before all that need it had started, or as soon as they and it itself had."""
    pod = replica.pod
    if replica.state is not ReplicaState.DONE or pod is None or pod.finished_at is None:
        return False
    if not all(each.started for each in working):
        return True
    starts = [pod.started_at, *(each.pod.started_at for each in working if each.pod is not None)]
    known = [time for time in starts if time is not None]
    return bool(known) and pod.finished_at <= max(known) + AT_ONCE


def _has_outlived_grace(state: JobState) -> bool:
    """Return whether the job has succeeded though its Scheduler runs; never where successPolicy names the Scheduler."""
    if state.job.spec.success_policy == "Scheduler" or not scheduler_left(state.job, state.replicas):
        return False
    return not left_of(SCHEDULER_GRACE, _workers_done_at(state.replicas), state.now)


def _workers_are_done(replicas: tuple[Replica, ...]) -> bool:
    """Return whether every Worker is done; a job that tunes has none that counts."""
    workers = of_types(replicas, names.WORKER)
    return bool(workers) and all(each.state is ReplicaState.DONE for each in workers) and not is_tuning(replicas)


def _workers_done_at(replicas: tuple[Replica, ...]) -> datetime | None:
    """Return when the last Worker ended; None where no pod says."""
    ends = (worker.pod.finished_at for worker in of_types(replicas, names.WORKER) if worker.pod is not None)
    return max((end for end in ends if end is not None), default=None)
