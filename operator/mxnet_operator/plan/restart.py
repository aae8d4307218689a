"""Restart policy: whether failed replicas fail their job, or start another attempt.

The table of `docs/semantics.md`: restartPolicy decides, exit codes where it says ExitCode, and disruptions (a preempted
pod, a drained node, a deletion by hand) are tried again without counting against backoffLimit.
"""

from typing import Final

import msgspec

from mxnet_operator.api.exit_codes import is_retryable
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.attempt import restart_scope
from mxnet_operator.plan.disruption import EVICTED, is_disruption
from mxnet_operator.plan.failure import Failure, describe, ended_at, failed_replicas, failure_of, first_of
from mxnet_operator.plan.replicas import Outcome, Replica

MAX_RESTARTING: Final = 64
"""Maximum number of pods replaced at a time in scope Replica: more at once would make the status too long."""


class Teardown(msgspec.Struct, frozen=True):
    """End of the present attempt, which another one follows."""

    replicas: tuple[Replica, ...]
    """Replicas that failed."""
    failures: int
    """Number of failures that count against backoffLimit; one at most where the whole gang restarts."""
    message: str
    of_all: bool = False
    """Whether all pods of the job are given up, however many, also where replicas restart one by one."""


def end_of_attempt(job: MXJob, replicas: tuple[Replica, ...], terminating: int = 0) -> Failure | Teardown | None:
    """Return the job's failure or the teardown that failed replicas lead to; None while none may be replaced now.

    The job has defaults. `terminating` is the number of pods being replaced: where replicas restart one by one, status
    lists each.
    """
    failed = failed_replicas(replicas)
    if not failed:
        return None
    decisive = _decisive(job, failed)
    final = tuple(
        replica
        for replica in failed
        if _is_never(job, replica) or (replica in decisive and not _is_retryable(job, replica))
    )
    if final:
        return failure_of(job, final)
    if restart_scope(job) == "Replica":
        failed = decisive = tuple(sorted(failed, key=ended_at)[: max(MAX_RESTARTING - terminating, 0)])
        if not failed:
            return None
    failures = sum(not _was_disrupted(replica) for replica in decisive)
    if restart_scope(job) == "Job":
        failures = min(failures, 1)
    limit = job.spec.run_policy.backoff_limit or 0
    counted = job.status.restarts_count_towards_max
    first = first_of(failed)
    if failures and counted + failures > limit:
        name = job.metadata.name
        ended = f"Job {name} has failed because it has reached the specified backoff limit ({limit})."
        return Failure(f"{ended} {describe(job, first)}")
    count = sum(replica.type == first.type for replica in failed)
    return Teardown(
        failed,
        failures,
        f"mxjob {job.metadata.name} is restarting because {count} {first.type} replica(s) failed "
        f"{counted_restart(job, failures)}. {describe(job, first)}",
    )


def counted_restart(job: MXJob, failures: int = 0) -> str:
    """Return which restart comes next, and how many of backoffLimit count with it, as messages say it."""
    counted = job.status.restarts_count_towards_max + failures
    return f"(restart {job.status.restarts + 1}; {counted} of {job.spec.run_policy.backoff_limit or 0} count)"


def _decisive(job: MXJob, failed: tuple[Replica, ...]) -> tuple[Replica, ...]:
    """Return the failures that count: in a gang the first ones, since the end of one ends its mates."""
    if restart_scope(job) == "Replica":
        return failed
    first = min(map(ended_at, failed))
    return tuple(replica for replica in failed if ended_at(replica) == first)


def _was_disrupted(replica: Replica) -> bool:
    return replica.outcome is Outcome.LOST and is_disruption(replica.pod)


def _is_never(job: MXJob, replica: Replica) -> bool:
    return job.spec.mx_replica_specs[replica.type].restart_policy == "Never"


def _is_retryable(job: MXJob, replica: Replica) -> bool:
    policy = job.spec.mx_replica_specs[replica.type].restart_policy
    if replica.outcome is Outcome.LOST or policy != "ExitCode":
        return True
    pod = replica.pod
    if pod is None or pod.exit_code is None or pod.pod_reason == EVICTED:  # the node's fault, not the program's
        return True
    return is_retryable(pod.exit_code, pod.reason, job.spec.run_policy.exit_codes)
