"""Fewer Workers: a restarted gang that has no room for all of its Workers goes on with those that got nodes.

`runPolicy.minWorkers` allows it. The environment of every process has the number, so the attempt that was placed in
part ends, and the next one has so many Workers: `status.fewerReplicas`, by which `as_started` builds the job. A gang
scheduler would place nothing of a gang that doesn't fit, so it is asked for as few as the job may have.
"""

from collections.abc import Iterator
from typing import Final

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Effects, Event, Reads, Teardown
from mxnet_operator.plan.failures import counted_restart
from mxnet_operator.plan.replicas import ReplicaState, labels, replicas_in, restart_scope
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import left_of

_PLACED_OR_WAITING: Final = frozenset({ReplicaState.RUNNING, ReplicaState.WAITING})


def fewer_workers(state: JobState) -> Teardown | Reads | Effects:
    """End an attempt after the first that got nodes for `minWorkers` Workers and for no more in the time for it.

    FewerWorkers is True while the job runs with fewer.
    """
    reported = _reported(state)
    job, replicas = state.job, state.replicas
    pods = [replica.pod for replica in replicas if replica.pod is not None and replica.state in _PLACED_OR_WAITING]
    unplaced = [replica for replica in replicas if replica.pod is not None and not replica.pod.is_placed]
    missing = len(unplaced)
    can_go_on = 0 < missing <= spare_workers(job) and len(pods) == len(replicas)
    is_full = all(replica.type == names.WORKER and replica.pod and replica.pod.unschedulable for replica in unplaced)
    if not (can_go_on and is_full):
        return reported
    times = (pod.placed_at if pod.is_placed else pod.created_at for pod in pods)
    since = max((time for time in times if time is not None), default=None)
    if left := left_of(state.policy.fewer_workers_after, since, state.now):
        return reported + Effects(requeue_after=left)
    if not state.observed.pods_listed:
        return Reads(pods="labelled")
    workers = _workers(job) - missing
    message = (
        f"mxjob {job.metadata.name} is restarting with {_of_all(state, workers)}, since {labels(unplaced)} had no node"
        f" for {state.policy.fewer_workers_after.seconds} s {counted_restart(job)}."
    )
    return Teardown((), 0, message, fewer_replicas={names.WORKER: workers})


def min_workers_ignored(job: MXJob) -> Iterator[Event]:
    """Yield a Warning about `minWorkers` in a job with defaults on which it has no effect."""
    least, workers = job.spec.run_policy.min_workers, _workers(job)
    if least is not None and (least > workers or restart_scope(job) != "Job"):
        why = f"the job has {workers} Workers" if least > workers else "its replicas restart one by one (restartScope)"
        yield Event("Warning", "UnsupportedField", f"Without effect: spec.runPolicy.minWorkers {least}, since {why}")


def spare_workers(job: MXJob) -> int:
    """Return without how many of its Workers the present attempt of a job with defaults may go on: 0 in the first."""
    least, is_first = job.spec.run_policy.min_workers, job.status.restarts <= job.status.first_attempt
    return 0 if least is None or is_first or restart_scope(job) != "Job" else max(0, _workers(job) - least)


def placed_at_once(job: MXJob) -> int:
    """Return how many pods of a job with defaults are placed at once or not at all, spare Workers left out.

    More than the job has can never be placed.
    """
    minimum, members = min_available(job), replicas_in(job)
    return minimum if minimum > members else min(minimum, members - spare_workers(job))


def min_available(job: MXJob) -> int:
    """Return how many pods a job with defaults asks to be placed at once: `minAvailable`, or all."""
    policy = job.spec.run_policy.scheduling_policy
    return (policy.min_available if policy is not None else None) or replicas_in(job)


def _reported(state: JobState) -> Effects:
    workers = state.job.status.fewer_replicas.get(names.WORKER)
    if workers is None:
        words = "The job runs with all of its Workers."
        return state.no_longer(conditions.FEWER_WORKERS, conditions.REASON_SPEC_IN_SYNC, words)
    message = (
        f"The job runs with {_of_all(state, workers)}, since the others had no node. A further restart begins with all."
    )
    return state.warn(conditions.FEWER_WORKERS, conditions.REASON_UNSCHEDULABLE, message, again="if changed")


def _workers(job: MXJob) -> int:
    spec = job.spec.mx_replica_specs.get(names.WORKER)
    return 0 if spec is None else spec.replicas or 0


def _of_all(state: JobState, workers: int) -> str:
    return f"{workers} of {state.job.status.started_replicas.get(names.WORKER, workers)} Workers"
