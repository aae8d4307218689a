"""Finished jobs: what of them is stopped and deleted, and when the job itself is.

What still runs is stopped under every cleanPodPolicy: the rest of a broken gang hangs for ever, and a tuning job's
tracker and servers never exit by themselves. Where the policy keeps pods they are ended in place, so that their logs
stay.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import DeleteJob, DeletePod, Effects, StopPod
from mxnet_operator.plan.children import Rules, child_deletions
from mxnet_operator.plan.integration import IntegrationPolicy
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.terminating_pods import delete_pod
from mxnet_operator.readers.durations import after
from mxnet_operator.readers.pods import ENDED


def finished(
    job: MXJob, observed: Observed, rules: Rules, now: datetime, integrations: tuple[IntegrationPolicy, ...]
) -> Effects:
    """Return the clean-up that a finished job with defaults still needs, and its deletion once its time is over.

    A job that training-operator 1.8.1 finished gets the state that `kubectl get` shows.
    """
    left = time_to_live(job, now)
    if left is not None and left <= timedelta(0):
        return Effects(actions=(DeleteJob(job.metadata.name, job.metadata.uid),))
    status = job.status
    with_state = None if status.state else msgspec.structs.replace(status, state=conditions.state_of(status.conditions))
    of_integrations = (action for each in integrations for action in each.finished(job, observed, now))
    policy = job.spec.run_policy.clean_pod_policy
    clean_up = (*_pods(policy, observed), *child_deletions(observed, rules, at_the_end=policy == "None"))
    return Effects(actions=(*clean_up, *of_integrations), status=with_state, requeue_after=left)


def pods_are_left(actions: tuple[object, ...], observed: Observed) -> bool:
    """Return whether pods of a job still exist that these actions, of its clean-up, delete."""
    return any(isinstance(action, DeletePod | StopPod) for action in actions) or any(
        pod.deleting for pod in observed.pods
    )


def time_to_live(job: MXJob, now: datetime) -> timedelta | None:
    """Return how long a finished job is kept from now; zero or less once it is due for deletion, None if kept for good.

    Counted from completionTime or, for a job that training-operator 1.8.1 left Failed without one, from the terminal
    condition.
    """
    ttl = job.spec.run_policy.ttl_seconds_after_finished
    since = (conditions.since(job.status.conditions, each) for each in sorted(conditions.TERMINAL))
    ended = job.status.completion_time or next(filter(None, since), None)
    if ttl is None or ended is None:
        return None
    return after(ended, ttl) - now


def _pods(policy: str | None, observed: Observed) -> Iterator[StopPod | DeletePod]:
    for pod in observed.pods:
        if pod.deleting:
            continue
        unfinished = pod.phase not in ENDED
        if policy == "All" or (unfinished and (policy == "Running" or not pod.is_placed)):
            yield delete_pod(pod)
        elif unfinished and not pod.stop_requested:
            yield StopPod(pod.name, pod.uid)
