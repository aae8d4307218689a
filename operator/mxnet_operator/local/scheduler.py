"""Binds pods to the one node of the local cluster, if what they ask for is free there."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from mxnet_operator.kube.answers import AnyObject
from mxnet_operator.kube.client import MERGE_PATCH, Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.local.kubelet.changes import Changes
from mxnet_operator.local.kubelet.events import EventRecorder
from mxnet_operator.local.kubelet.status import now
from mxnet_operator.local.quantities import Resources, add, pod_requests, quantity

_LOG = logging.getLogger(__name__)

Object = dict[str, Any]

_RETRY_SECONDS = 1.0


def misfit(spec: Mapping[str, Any], node_labels: Mapping[str, str], free: Resources) -> str | None:
    """Why a pod can't go to the node, in the scheduler's words; None if it can.

    Affinity and topology are not looked at: with one node they could only keep a pod waiting for ever.
    """
    selector = spec.get("nodeSelector") or {}
    if any(node_labels.get(key) != value for key, value in selector.items()):
        return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    try:
        asked = pod_requests(spec)
    except ValueError as error:
        return f"0/1 nodes are available: {error}."
    short = [name for name, amount in sorted(asked.items()) if amount > free.get(name, Decimal(0)) and amount > 0]
    if short:
        return f"0/1 nodes are available: {', '.join(f'1 Insufficient {name}' for name in short)}."
    return None


def taken(pods: Iterable[Object]) -> Resources:
    """What the pods take together that have a node and haven't ended."""
    requests = []
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"} and pod["spec"].get("nodeName"):
            try:
                requests.append(pod_requests(pod["spec"]))
            except ValueError:
                _LOG.warning("pod %s asks for what is no quantity", pod["metadata"]["name"])
    return add(requests)


class Scheduler:
    """Looks at the pods whenever they change; the oldest comes first."""

    def __init__(
        self,
        client: Client,
        node_name: str,
        node_labels: Mapping[str, str],
        *,
        allocatable: Mapping[str, str],
        pods: Callable[[], Iterable[Object]],
        changes: Changes,
        events: EventRecorder,
    ) -> None:
        """`pods` gives every pod as the watch last showed it; `changes` rings when one of them changes."""
        self._client = client
        self._node_name = node_name
        self._node_labels = node_labels
        self._allocatable = {name: quantity(amount) for name, amount in allocatable.items()}
        self._pods = pods
        self._changes = changes
        self._events = events
        # What has been bound but isn't seen as bound yet: the watch is behind our own writes.
        self._assumed: dict[str, Object] = {}

    async def run(self) -> None:
        """Bind what fits until cancelled."""
        while True:
            changed = asyncio.ensure_future(self._changes.wait())
            try:
                retry = await self._pass()
                await asyncio.wait({changed}, timeout=_RETRY_SECONDS if retry else None)
            finally:
                changed.cancel()

    async def _pass(self) -> bool:
        """Go through the pods once; True if a request failed and another pass is due without a change."""
        known = {pod["metadata"]["uid"]: pod for pod in self._pods()}
        self._assumed = {
            uid: pod for uid, pod in self._assumed.items() if uid in known and not known[uid]["spec"].get("nodeName")
        }
        waiting = [
            pod
            for uid, pod in known.items()
            if not pod["spec"].get("nodeName") and uid not in self._assumed and self._is_schedulable(pod)
        ]
        if not waiting:
            return False
        used = add([taken(known.values()), taken(self._assumed.values())])
        waiting.sort(key=lambda pod: (pod["metadata"].get("creationTimestamp") or "", pod["metadata"]["name"]))
        failed = False
        for pod in waiting:
            free = {name: amount - used.get(name, Decimal(0)) for name, amount in self._allocatable.items()}
            why = misfit(pod["spec"], self._node_labels, free)
            try:
                if why is None:
                    await self._bind(pod)
                    used = add([used, pod_requests(pod["spec"])])
                else:
                    await self._refuse(pod, why)
            except ApiError as error:
                if error.code not in {404, 409}:  # the pod has gone or is bound: the watch will say
                    _LOG.warning("pod %s: %s", pod["metadata"]["name"], error)
                    failed = True
            except KubeError as error:
                _LOG.info("pod %s: %s", pod["metadata"]["name"], error)
                failed = True
        return failed

    @staticmethod
    def _is_schedulable(pod: Object) -> bool:
        return (
            "deletionTimestamp" not in pod["metadata"]
            and not pod["spec"].get("schedulingGates")
            and (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}
        )

    async def _bind(self, pod: Object) -> None:
        metadata = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self._node_name},
        }
        path = PODS.path(metadata["namespace"], metadata["name"], "binding")
        await self._client.create(path, binding, shape=AnyObject)
        self._assumed[metadata["uid"]] = {**pod, "spec": {**pod["spec"], "nodeName": self._node_name}}
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {self._node_name}"
        self._events.record(pod, "Normal", "Scheduled", message)

    async def _refuse(self, pod: Object, why: str) -> None:
        conditions = (pod.get("status") or {}).get("conditions") or []
        old: Object = next((each for each in conditions if each["type"] == "PodScheduled"), {})
        if old.get("message") == why:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastTransitionTime": old.get("lastTransitionTime") or now(),
        }
        others = [each for each in conditions if each["type"] != "PodScheduled"]
        metadata = pod["metadata"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [*others, condition]}}
        await self._client.patch(PODS.path(metadata["namespace"], metadata["name"], "status"), body, MERGE_PATCH)
        self._events.record(pod, "Warning", "FailedScheduling", why)
