"""Clean-up of a finished job: which pods and children cleanPodPolicy stops and deletes.

What still runs is stopped under every policy: the rest of a broken gang hangs for ever, and a tuning job's tracker and
servers never exit by themselves. Where the policy keeps pods they are ended in place, so that their logs stay.
"""

from collections.abc import Iterator

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import DeleteChild, DeletePod, StopPod
from mxnet_operator.plan.children import child_deletions
from mxnet_operator.plan.deletion import delete_pod
from mxnet_operator.plan.observed import Observed
from mxnet_operator.readers.pods import ENDED


def clean_up(job: MXJob, observed: Observed) -> tuple[StopPod | DeletePod | DeleteChild, ...]:
    """Return the clean-up that a finished job with defaults still needs; empty once it is complete."""
    policy = job.spec.run_policy.clean_pod_policy
    return (*_pods(policy, observed), *child_deletions(observed, at_the_end=policy == "None"))


def _pods(policy: str | None, observed: Observed) -> Iterator[StopPod | DeletePod]:
    for pod in observed.pods:
        if pod.deleting:
            continue
        unfinished = pod.phase not in ENDED
        if policy == "All" or (unfinished and (policy == "Running" or not pod.is_placed)):
            yield delete_pod(pod)
        elif unfinished and not pod.stop_requested:
            yield StopPod(pod.name, pod.uid)
