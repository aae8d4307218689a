"""Nodes, scheduler and kubelets of a simulation: what they and fate do to pods, and the record of it in `lives`."""

from typing import Any

from simulator.api import NODES, PODS, Api, Object
from simulator.clock import Clock
from simulator.lives import NOBODY_KNOWS, Lives

from mxnet_operator.api import names
from mxnet_operator.local.apiserver.patch import MERGE_PATCH
from mxnet_operator.local.apiserver.store import WriteOptions, timestamp

NODE_NAMES = ("node-0", "node-1")
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
DISRUPTIONS = {"preempt": "PreemptionByScheduler", "taint": "DeletionByTaintManager", "drain": "EvictionByEvictionAPI"}


class Kubelet:
    """All nodes' at once. What can't happen to a pod as it is, doesn't."""

    def __init__(self, api: Api, clock: Clock, lives: Lives) -> None:
        self._api, self._clock, self._lives = api, clock, lives
        self.down: set[str] = set()
        """Nodes of which nobody hears anything."""
        self.hanging: set[str] = set()
        """uids of pods that never end by themselves."""
        for name in NODE_NAMES:
            self._join(name)

    def up(self, node: str) -> None:
        """The node talks again, as if nothing had been; its pods go on, and those deleted meanwhile end."""
        if node in self.down:
            self.down.remove(node)
            if self._api.node(node) is None:
                self._join(node)
            else:
                self._set_node(node, {"spec": {"taints": None}})
                self._set_node(node, {"status": READY}, "status")

    def lose(self, node: str) -> None:
        """The node stops talking, and after a while everybody knows."""
        self.down.add(node)
        if self._api.node(node) is not None:
            self._set_node(node, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "status")

    def put_out_of_service(self, node: str) -> None:
        """An administrator says that a lost node is switched off."""
        if node in self.down and self._api.node(node) is not None:
            self._set_node(node, {"spec": {"taints": [OUT_OF_SERVICE]}})

    def remove_node(self, node: str) -> None:
        """The Node object of a lost node is deleted."""
        if node in self.down and self._api.node(node) is not None:
            self._api.store.delete(NODES, "", node)

    def is_off(self, node: str) -> bool:
        """Whether it is known that the node runs nothing any more."""
        found = self._api.node(node)
        return found is None or (node in self.down and OUT_OF_SERVICE in (found["spec"].get("taints") or []))

    def hang(self, name: str) -> None:
        """A program waits for something that never comes."""
        if pod := self._running(name):
            self.hanging.add(pod["metadata"]["uid"])

    def go_on(self, name: str) -> bool:
        """The next thing that happens to a pod by itself: placed, started, ended because it must; False if nothing."""
        pod = self._api.pod(name)
        if pod is None:
            return False
        metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
        node = spec.get("nodeName")
        if not node:
            return self._place(pod)
        ended = status["phase"] in ("Succeeded", "Failed") and "deletionTimestamp" not in metadata
        if node in self.down or ended:
            return False
        if "deletionTimestamp" in metadata:
            self._let_go(pod)
        elif (code := exit_code(pod)) is not None:  # Its sidecar ends, too.
            self._patch(pod, phase="Failed" if code else "Succeeded")
        elif spec.get("activeDeadlineSeconds") == 1:
            self._patch(pod, phase="Failed", reason="DeadlineExceeded", **self._terminated(143, "Error"))
        elif status["phase"] == "Pending":
            running = {"running": {"startedAt": self._time()}}
            self._patch(pod, phase="Running", containerStatuses=[{"name": names.CONTAINER, "state": running}])
            if life := self._lives.by_uid.get(metadata["uid"]):
                life.started, life.started_at = True, self._api.store.storage.revision
        else:
            return False
        return True

    def _let_go(self, pod: Object) -> None:
        life = self._lives.by_uid.get(pod["metadata"]["uid"])
        has_own_time = exit_code(pod) is not None or any(
            each["type"] == "DisruptionTarget" for each in pod["status"].get("conditions") or ()
        )
        if life is not None and life.end == "disruption" and not has_own_time:
            # Without a grace period `deletionTimestamp` is the present, however long ago the first deletion was.
            life.times.append((self._api.store.storage.revision + 1, self._time()))
        self._api.delete(PODS, pod["metadata"]["name"], grace=0)

    def exit(self, name: str, code: int, reason: str = "", sidecar: bool = False) -> None:
        """The mxnet container ends; with a sidecar the pod stays Running."""
        pod = self._running(name)
        if pod is None:
            return
        phase = "Running" if sidecar else "Failed" if code else "Succeeded"
        self._patch(pod, phase=phase, **self._terminated(code, reason or ("Error" if code else "Completed")))
        if "deletionTimestamp" not in pod["metadata"]:
            self._end(pod, "exit" if code else "done", code, reason)
        elif life := self._lives.by_uid.get(pod["metadata"]["uid"]):
            life.give_time(self._api.store.storage.revision, self._time())

    def evict(self, name: str) -> None:
        """Node pressure: the kubelet ends the pod, with no word about its containers."""
        if pod := self._running(name):
            conditions = self._disrupted(pod, "TerminationByKubelet")
            self._patch(pod, phase="Failed", reason="Evicted", containerStatuses=[], conditions=conditions)
            self._end(pod, "node" if "deletionTimestamp" not in pod["metadata"] else "disruption")

    def shut_down(self, node: str, seconds: float = 0) -> None:
        """A node shuts down in an orderly way: its kubelet ends the pods and says so, then falls silent.

        It says so once the last container of a pod has ended, the mxnet container so many seconds before that.
        """
        containers, ended_at, pods = self._terminated(143, "Error"), self._time(), self._of(node)
        self._clock.seconds += seconds
        for pod in pods:
            why = {"reason": "Terminated", "message": "Pod was terminated in response to imminent node shutdown."}
            conditions = self._disrupted(pod, "TerminationByKubelet")
            self._patch(pod, phase="Failed", conditions=conditions, **why, **containers)
            self._end(pod, "disruption", at=ended_at)
        self.lose(node)

    def reboot(self, node: str, reason: str = "Unknown") -> None:
        """A node's power fails and comes back: nobody saw the end of what ran there."""
        code = 255 if reason == "Unknown" else 137
        for pod in self._of(node):
            self._patch(pod, phase="Failed", **self._terminated(code, reason))
            self._end(pod, "disruption")

    def reject(self, name: str) -> None:
        """The kubelet doesn't admit the pod."""
        pod = self._api.pod(name)
        if pod is not None and pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
            self._patch(pod, phase="Failed", reason="OutOfcpu", message="Pod was rejected")
            self._end(pod, "node", at=NOBODY_KNOWS)

    def unschedulable(self, name: str) -> None:
        pod = self._api.pod(name)
        if pod is not None and not pod["spec"].get("nodeName"):
            waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
            self._patch(pod, conditions=[waiting])

    def disrupt(self, name: str, how: str) -> None:
        """The scheduler, the taint manager or a drain takes the pod away: a condition, then a deletion.

        A pod on a lost node stays until that talks again, or is known to be off.
        """
        pod = self._api.pod(name)
        if pod is not None and _is_running(pod) and "deletionTimestamp" not in pod["metadata"]:
            self._patch(pod, conditions=self._disrupted(pod, DISRUPTIONS[how]))
            self._end(pod, "disruption")
            self._api.delete(PODS, name)

    def collect(self, node: str) -> None:
        """The pod collector removes what a node had that is switched off."""
        for pod in self._api.pods():
            if pod["spec"].get("nodeName") == node and self.is_off(node):
                self.delete(pod["metadata"]["name"], grace=0)

    def delete(self, name: str, grace: int | None = None) -> None:
        """Somebody deletes a pod of a job by hand."""
        if (pod := self._api.pod(name)) is None:
            return
        life = self._lives.by_uid.get(pod["metadata"]["uid"])
        marked = self._api.store.storage.revision + 1  # One that goes at once is marked first, too.
        if life is not None and life.counts:
            life.removed = life.removed or marked
            life.give_time(marked, self._time())
        self._api.delete(PODS, name, grace)
        if pod["status"]["phase"] in ("Pending", "Running") and exit_code(pod) is None:
            self._end(pod, "disruption", since=marked)

    def _place(self, pod: Object) -> bool:
        first = sum(pod["metadata"]["name"].encode()) % len(NODE_NAMES)
        node = next((each for each in (*NODE_NAMES[first:], *NODE_NAMES) if each not in self.down), None)
        if node is not None:
            target = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"name": node}}
            self._api.store.bind(pod["metadata"]["namespace"], pod["metadata"]["name"], target)
        return node is not None

    def _join(self, node: str) -> None:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "spec": {}, "status": READY}
        self._api.store.create(NODES, "", body)

    def _set_node(self, node: str, change: Object, part: str = "") -> None:
        self._api.store.patch(NODES, "", node, MERGE_PATCH, change, options=WriteOptions(part))

    def runs(self, pod: Object) -> bool:
        """Whether its mxnet container runs, and somebody would hear of its end."""
        return _is_running(pod) and pod["spec"]["nodeName"] not in self.down

    def _running(self, name: str) -> Object | None:
        pod = self._api.pod(name)
        return pod if pod is not None and self.runs(pod) else None

    def _of(self, node: str) -> list[Object]:
        return [pod for pod in self._api.pods() if pod["spec"].get("nodeName") == node and self.runs(pod)]

    def _end(
        self, pod: Object, end: Any, code: int = 0, reason: str = "", *, at: str | None = None, since: int | None = None
    ) -> None:
        life = self._lives.by_uid.get(pod["metadata"]["uid"])
        if life is not None and pod["spec"].get("activeDeadlineSeconds") != 1:
            since = self._api.store.storage.revision if since is None else since
            life.finish(end, since, self._time() if at is None else at, code, reason)

    def _patch(self, pod: Object, **status: Any) -> None:
        self._api.patch_status(pod, status)

    def _terminated(self, code: int, reason: str) -> Object:
        state = {"exitCode": code, "reason": reason, "finishedAt": self._time()}
        return {"containerStatuses": [{"name": names.CONTAINER, "state": {"terminated": state}}]}

    def _disrupted(self, pod: Object, reason: str) -> list[Object]:
        """The pod's conditions with DisruptionTarget: whoever comes last gives the reason, the first the time."""
        conditions = {each["type"]: each for each in pod["status"].get("conditions") or ()}
        since = conditions.get("DisruptionTarget", {}).get("lastTransitionTime", self._time())
        new = {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": since}
        return list((conditions | {"DisruptionTarget": new}).values())

    def _time(self) -> str:
        return timestamp(self._api.store.clock())


def _is_running(pod: Object) -> bool:
    return pod["status"]["phase"] == "Running" and exit_code(pod) is None


def exit_code(pod: Object) -> int | None:
    """The exit code of the mxnet container; None while it hasn't ended."""
    for container in pod["status"].get("containerStatuses") or ():
        if "terminated" in container["state"]:
            code: int = container["state"]["terminated"]["exitCode"]
            return code
    return None
