"""What becomes of a job in which replicas failed: it fails, or it is torn down and tried again.

The table of `semantics.md`: restartPolicy decides, exit codes where it says ExitCode, and disruptions (a preempted pod,
a drained node, a deletion by hand) are tried again without counting against backoffLimit.
"""

from typing import Final

import msgspec

from mxnet_operator.api.exit_codes import is_retryable
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.attempt import restart_scope
from mxnet_operator.plan.failure import Failure, describe, failed_replicas, failure_of, first_of
from mxnet_operator.plan.replicas import Outcome, Replica

DISRUPTIONS: Final = frozenset(
    {"PreemptionByScheduler", "DeletionByTaintManager", "EvictionByEvictionAPI", "DeletionByPodGC"}
)
"""Reasons of the pod condition DisruptionTarget that don't count; TerminationByKubelet (node pressure) does."""

EVICTED: Final = "Evicted"
"""The reason of a pod that the kubelet put out, be it for its own limits: it counts, whatever its exit code."""


class Teardown(msgspec.Struct, frozen=True):
    """The attempt is over and another one is to come."""

    replicas: tuple[Replica, ...]
    """Those that failed."""
    failures: int
    """How many of them count against backoffLimit; one at most where the whole gang restarts."""
    message: str


def judge(job: MXJob, replicas: tuple[Replica, ...]) -> Failure | Teardown | None:
    """What the failed replicas of a job with defaults lead to; None while there are none."""
    failed = failed_replicas(replicas)
    if not failed:
        return None
    final = tuple(replica for replica in failed if not _may_be_retried(job, replica))
    if final:
        return failure_of(job, final)
    failures = sum(not is_disruption(replica) for replica in failed)
    if restart_scope(job) == "Job":
        failures = min(failures, 1)
    limit = job.spec.run_policy.backoff_limit or 0
    counted = job.status.restarts_count_towards_max
    first = first_of(failed)
    if failures and counted + failures > limit:
        name = job.metadata.name
        return Failure(
            f"Job {name} has failed because it has reached the specified backoff limit ({limit}). {describe(first)}"
        )
    count = sum(replica.type == first.type for replica in failed)
    return Teardown(
        failed,
        failures,
        f"mxjob {job.metadata.name} is restarting because {count} {first.type} replica(s) failed "
        f"(restart {job.status.restarts + 1}; {counted + failures} of {limit} count). {describe(first)}",
    )


def is_disruption(replica: Replica) -> bool:
    """Whether the replica was taken away, rather than failed by itself."""
    if replica.outcome is not Outcome.LOST:
        return False
    return replica.pod is None or replica.pod.disruption in ("", *DISRUPTIONS)


def _may_be_retried(job: MXJob, replica: Replica) -> bool:
    policy = job.spec.mx_replica_specs[replica.type].restart_policy
    if policy == "Never":
        return False
    if replica.outcome is Outcome.LOST or policy != "ExitCode":
        return True
    pod = replica.pod
    if pod is None or pod.exit_code is None or pod.pod_reason == EVICTED:  # the node's fault, not the program's
        return True
    return is_retryable(pod.exit_code, pod.reason, job.spec.run_policy.exit_codes)
