"""Binds pods to the one node of the local cluster, gang by gang, and says on the others what they wait for."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from mxnet_operator.api.quantities import Resources, add, pod_requests, quantity
from mxnet_operator.kube.answers import AnyObject
from mxnet_operator.kube.client import MERGE_PATCH, Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.local.events import EventRecorder, now
from mxnet_operator.local.scheduling import gangs
from mxnet_operator.local.scheduling.placing import Decision, Node, decide
from mxnet_operator.local.waiting import Changes

_LOG = logging.getLogger(__name__)

Object = dict[str, Any]

_RETRY_SECONDS: Final = 1.0
REPORT_SECONDS: Final = 1.0
"""Least time between two updates of the messages of waiting pods."""
SECONDS_PER_CHANGE: Final = 0.1
"""Time between two updates, for each message that the first one changed: one job's end may change all messages."""
_REST: Final = 9
"""Rest after a pass over all pods, as a multiple of its CPU time: passes take at most a tenth of a CPU."""
FORMING_SECONDS: Final = 2.0
"""How long the first pods of a gang wait for the others in silence: those of a job that starts come one by one."""


def taken(pods: Iterable[Object]) -> Resources:
    """Add up what the pods take that have a node and haven't ended."""
    return add(pod_requests(pod["spec"]) for pod in pods if gangs.is_held(pod))


class Scheduler:
    """Looks at the pods whenever they change.

    It keeps nothing that it could not read from the pods again, but for the order in which it first saw those of one
    second and what it has just bound: so one that starts anew goes on where its predecessor stopped.
    """

    def __init__(
        self,
        client: Client,
        node_name: str,
        *,
        allocatable: Mapping[str, str],
        node: Callable[[], Object | None],
        pods: Callable[[], Iterable[Object]],
        why_blocked: Callable[[Object], str] = lambda _: "",
        changes: Changes,
        events: EventRecorder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a scheduler, which makes no request before `run`.

        `node` gives the Node object and `pods` every pod, as the watches last showed them; `changes` rings when one of
        them changes. Nothing is placed while there is no node.
        """
        self._client = client
        self._node_name = node_name
        self._allocatable = {name: quantity(amount) for name, amount in allocatable.items()}
        self._node = node
        self._pods = pods
        self._why_blocked = why_blocked
        self._changes = changes
        self._events = events
        self._clock = clock
        self._seen: dict[str, None] = {}
        """The uids of pods in the order in which they came."""
        self._assumed: dict[str, Object] = {}
        """What has been bound but isn't seen as bound yet: the watch is behind our own writes."""
        self._told: dict[str, str] = {}
        """By a pod's uid, the words that were written last: the watch may not show them yet."""
        self._report_at = 0.0
        self._rest = 0.0
        self._forming: dict[str, float] = {}
        """By a pod's uid, since when its gang lacks pods."""

    async def run(self) -> None:
        """Bind what fits until cancelled."""
        while True:
            changed = asyncio.ensure_future(self._changes.wait())
            try:
                again = await self._pass()
                await asyncio.sleep(self._rest)
                await asyncio.wait({changed}, timeout=again)
            finally:
                changed.cancel()

    async def _pass(self) -> float | None:
        """Go through the pods once; the seconds after which to look again though nothing changes, None: never."""
        if (node := self._node()) is None:
            return None
        try:
            began = time.thread_time()
            decision = self._decide(node)
            self._rest = _REST * (time.thread_time() - began)
            silent = self._silent(decision.forming)
            words = {uid: why for uid, why in decision.words.items() if uid not in silent}
            # At once: to bind the pods of a large job takes a while, and the others have to know what they wait for.
            bound, next_report = await asyncio.gather(
                self._bind_all(decision.to_place), self._report(words), return_exceptions=True
            )
            if isinstance(bound, BaseException):
                raise bound
            if isinstance(next_report, BaseException):
                raise next_report
            again = min((left for left in (next_report, *silent.values()) if left is not None), default=None)
            return again if bound else _RETRY_SECONDS
        except KubeError as error:
            _LOG.info("scheduler: %s", error)
            return _RETRY_SECONDS

    def _decide(self, found: Object) -> Decision:
        known = {pod["metadata"]["uid"]: pod for pod in self._pods()}
        self._assumed = {
            uid: pod for uid, pod in self._assumed.items() if uid in known and not known[uid]["spec"].get("nodeName")
        }
        self._seen = {uid: None for uid in (*self._seen, *known) if uid in known}
        self._told = {uid: words for uid, words in self._told.items() if uid in known}
        pods = [self._assumed.get(uid, known[uid]) for uid in self._seen]
        used = taken(pods)
        free = {name: amount - used.get(name, 0) for name, amount in self._allocatable.items()}
        node = Node(self._allocatable, found["metadata"].get("labels") or {})
        blocked = {uid: why for uid, pod in known.items() if (why := self._why_blocked(pod))}
        return decide(gangs.in_order(pods), node, free, blocked)

    async def _bind_all(self, pods: Iterable[Object]) -> bool:
        return all([await self._bind(pod) for pod in pods])

    async def _bind(self, pod: Object) -> bool:
        """Give a pod its node; whether it is bound, or gone, now.

        Raises:
            KubeError: It may be bound or not.
        """
        metadata = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self._node_name},
        }
        path = PODS.path(metadata["namespace"], metadata["name"], "binding")
        try:
            await self._client.create(path, binding, shape=AnyObject)
        except ApiError as error:
            if error.code >= 500:
                raise
            if error.code == 409:  # it is bound, or another has its name: the watch will say
                self._assume(pod)
            elif error.code != 404:
                _LOG.warning("pod %s: %s", metadata["name"], error)
                return False
            return True
        self._assume(pod)
        message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {self._node_name}"
        self._events.record(pod, "Normal", "Scheduled", message)
        return True

    def _assume(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        self._assumed[uid] = {**pod, "spec": {**pod["spec"], "nodeName": self._node_name}}

    def _silent(self, forming: Iterable[str]) -> dict[str, float]:
        """Return the pods of incomplete gangs of which nothing is said yet, and for how many seconds more."""
        time_now = self._clock()
        self._forming = {uid: self._forming.get(uid, time_now) for uid in forming}
        left = {uid: since + FORMING_SECONDS - time_now for uid, since in self._forming.items()}
        return {uid: seconds for uid, seconds in left.items() if seconds > 0}

    async def _report(self, words: Mapping[str, str]) -> float | None:
        """Write on the pods what they wait for: at once where nothing is said yet, changes at a bounded rate."""
        new: list[tuple[Object, str]] = []
        changed: list[tuple[Object, str]] = []
        for pod in self._pods():
            uid = pod["metadata"]["uid"]
            why, said = words.get(uid), self._told.get(uid) or _said(pod)
            if why is not None and why != said:
                (new if said is None else changed).append((pod, why))
        for pod, why in new:
            await self._refuse(pod, why)
            self._events.record(pod, "Warning", "FailedScheduling", why)
        if not changed:
            return None
        if (left := self._report_at - self._clock()) > 0:
            return left
        for pod, why in changed:
            await self._refuse(pod, why)
        self._report_at = self._clock() + max(REPORT_SECONDS, SECONDS_PER_CHANGE * len(changed))
        return None

    async def _refuse(self, pod: Object, why: str) -> None:
        old, metadata = _condition(pod), pod["metadata"]
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastTransitionTime": old.get("lastTransitionTime") or now(),
        }
        others = [each for each in (pod.get("status") or {}).get("conditions") or [] if each["type"] != "PodScheduled"]
        body = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [*others, condition]}}
        try:
            await self._client.patch(PODS.path(metadata["namespace"], metadata["name"], "status"), body, MERGE_PATCH)
        except ApiError as error:
            if error.code not in {404, 409}:  # it has gone
                raise
        self._told[metadata["uid"]] = why


def _said(pod: Object) -> str | None:
    """Return what a scheduler wrote on the pod; the API server writes there too, of scheduling gates."""
    condition = _condition(pod)
    return condition.get("message") if condition.get("reason") == "Unschedulable" else None


def _condition(pod: Object) -> Object:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})
