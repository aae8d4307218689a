"""An older gang beside the job of a simulation, which waits for GPUs that no node has: `--gang-precedence-after`.

The same controllers reconcile it, without faults. Nothing else happens to it but what is said here.
"""

from datetime import datetime

from simulator.api import ELDER, NAMESPACE, PODS, Api, Object
from simulator.clock import START, Clock

from mxnet_operator.api import names

LACKING = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
GPU = {"limits": {"nvidia.com/gpu": 1}}
WORKERS = 2


class Elder:
    """The gang, and what happens to it."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock

    def create(self) -> None:
        """Make the job, a second before any other."""
        container = {"name": names.CONTAINER, "image": "mxjob/mxnet:1.9.1", "resources": GPU}
        worker = {"replicas": WORKERS, "template": {"spec": {"containers": [container]}}}
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": ELDER, "namespace": NAMESPACE},
            "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {"Worker": worker}},
        }
        self._api.store.create(self._api.jobs, NAMESPACE, body)
        self._clock.seconds += 1

    def tell(self) -> None:
        """The scheduler says of each of its pods that waits what no node has."""
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": LACKING}
        for pod in self._api.pods_of_elder():
            if not pod["spec"].get("nodeName") and not _is_told(pod):
                self._api.patch_status(pod, {"conditions": [waits]})

    def place(self) -> bool:
        """There is room for all of them; False where none of them waits for it."""
        pods = self._api.pods_of_elder()
        if len(pods) < WORKERS or any(pod["spec"].get("nodeName") for pod in pods):
            return False
        for pod in pods:
            target = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"name": "node-0"}}
            self._api.store.bind(NAMESPACE, pod["metadata"]["name"], target)
        return True

    def delete(self) -> None:
        """Its user deletes it."""
        self._api.delete(self._api.jobs, ELDER)
        for pod in self._api.pods_of_elder():
            self._api.delete(PODS, pod["metadata"]["name"], grace=0)

    @property
    def waits_since(self) -> float | None:
        """The second since which all of it has waited for what no node has; None while it doesn't."""
        job = self._api.store.storage.find(self._api.jobs.key, (NAMESPACE, ELDER))
        pods = self._api.pods_of_elder()
        waits = all(
            _is_told(pod) and not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
            for pod in pods
        )
        if job is None or len(pods) < WORKERS or not waits:
            return None
        created = max(datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in pods)
        return (created - START).total_seconds()


class Turn:
    """What a controller that knows of the gang by now must make of it: whether it comes first."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._since: float | None = None
        self._begins = 0.0
        """The second in which it came first."""

    def comes_first(self, since: float | None, now: float) -> bool:
        """Whether the gang comes first in this look at a job that could start; a second to either side is let go."""
        if since is None or now < since + self._after:
            self._since = None
            return False
        if since != self._since:
            self._since, self._begins = since, now
        return since + self._after + 1 <= now < self._begins + self._after - 1


def _is_told(pod: Object) -> bool:
    return any(each.get("message") == LACKING for each in pod["status"].get("conditions") or ())
