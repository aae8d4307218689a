"""Lifecycle of one pod on this node, from its address to its deletion."""

import asyncio
import logging
import signal
import time
from datetime import datetime
from typing import Any

from mxnet_operator.kube.errors import KubeError
from mxnet_operator.local.apiserver.keyed_objects import fetch_keyed_objects
from mxnet_operator.local.events import now
from mxnet_operator.local.kubelet.container import Container
from mxnet_operator.local.kubelet.host import Host
from mxnet_operator.local.kubelet.preparation import PodPlace
from mxnet_operator.local.kubelet.status import (
    OWN_CONDITIONS,
    ContainerRecord,
    StatusWriter,
    conditions,
    lost,
    phase,
    waiting,
)
from mxnet_operator.local.kubelet.volumes import MountError, make_volumes, references
from mxnet_operator.local.waiting import Stop, Stopped
from mxnet_operator.readers.pods import ENDED

_LOG = logging.getLogger(__name__)

DEADLINE_REASON = "DeadlineExceeded"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


class Pod:
    """Runner of one pod: `run` it, `update` it when its API object changes, `stop` it."""

    def __init__(self, host: Host, pod: dict[str, Any], address: str) -> None:
        self._host = host
        self._pod = pod
        self._address = address
        self._folder = host.folder / pod["metadata"]["uid"]
        spec = pod["spec"]
        self._records = [
            *(ContainerRecord(each, initial=True) for each in spec.get("initContainers") or []),
            *(ContainerRecord(each, initial=False) for each in spec["containers"]),
        ]
        self._containers: list[Container] = []
        self._start_time = now()
        self._failure: dict[str, str] = {}
        self._over = False
        self._stop = Stop()
        self._kill: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._deleted = asyncio.Event()
        self._gone = False
        self._own_conditions: list[dict[str, Any]] = []
        self.ended = asyncio.Event()
        """Set once every process of the pod has ended."""
        self._writer = StatusWriter(host.client, host.timing, lambda: self._pod, self._status)

    async def run(self) -> None:
        """Run the containers, write their status, and confirm a requested deletion at the end."""
        writing = asyncio.create_task(self._writer.run())
        try:
            self.update(self._pod)
            await self._live()
            self._over = True
            self.ended.set()
            if not self._gone:
                self._writer.changed()
                await self._writer.written()
                await self._deleted.wait()
            if not self._gone:
                await self._writer.confirm_deletion()
        finally:
            self._disarm()
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    def update(self, pod: dict[str, Any]) -> None:
        """Apply a new version of the pod's API object: a deletion, a deadline."""
        self._pod = pod
        metadata, spec = pod["metadata"], pod["spec"]
        if "deletionTimestamp" in metadata:
            self._deleted.set()
            self.stop(metadata["deletionGracePeriodSeconds"])
        seconds = spec.get("activeDeadlineSeconds")
        if seconds is not None and not self._stop.requested:
            started = datetime.fromisoformat(self._start_time).timestamp()
            self._arm(started + seconds - time.time())

    def abandon(self, grace: float) -> None:
        """Stop the containers, with SIGKILL `grace` seconds after SIGTERM, without writing a status.

        The pod is no longer in the API, or the whole node stops.
        """
        self._gone = True
        self._deleted.set()
        self._writer.close()
        self.stop(grace)

    def stop(self, grace: float) -> None:
        """Stop the containers; a later call can only shorten the remaining grace period, in seconds."""
        loop = asyncio.get_running_loop()
        if not self._stop.requested:
            self._stop.request()
            self._disarm()
            self._signal(signal.SIGTERM)
        at = loop.time() + grace
        if self._kill is None or at < self._kill.when():
            if self._kill is not None:
                self._kill.cancel()
            self._kill = loop.call_at(at, self._signal, signal.SIGKILL)

    async def _live(self) -> None:
        try:
            place = await self._stop.unless(self._placed())
            for record in self._records:
                if record.initial:
                    await self._run(record, place)
                    if record.exit_code != 0:
                        self._lose_the_rest()
                        return
            main = [each for each in self._records if not each.initial]
            results = await asyncio.gather(*(self._run(each, place) for each in main), return_exceptions=True)
            if any(isinstance(each, Stopped) for each in results):
                self._lose_the_rest()
        except Stopped:
            self._lose_the_rest()
        except Exception:
            _LOG.exception("the kubelet failed to run pod %s", self._pod["metadata"]["name"])
            self._lose_the_rest()
        finally:
            if self._kill is not None:
                self._kill.cancel()

    async def _run(self, record: ContainerRecord, place: PodPlace) -> None:
        container = Container(
            self._host, record, place, pod=lambda: self._pod, stop=self._stop, publish=self._writer.changed
        )
        self._containers.append(container)
        try:
            await container.run()
        except Stopped:
            raise
        except Exception:
            _LOG.exception("the kubelet failed to run container %s", record.name)
            container.signal(signal.SIGKILL)
            record.state = lost()

    async def _placed(self) -> PodPlace:
        """Make the pod's folder and volumes, with retries."""
        spec, namespace = self._pod["spec"], self._pod["metadata"]["namespace"]
        if any(each.initial for each in self._records):
            for record in self._records:
                record.state = waiting("PodInitializing")
        self._writer.changed()
        while True:
            try:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                for record in self._records:
                    (self._folder / "logs" / record.name).mkdir(parents=True, exist_ok=True)
                objects = await fetch_keyed_objects(self._host.client, namespace, references(spec))
                folder = self._folder / "volumes"
                claimed = await self._host.volume_claims.folders_of(self._pod)
                volumes = await asyncio.to_thread(make_volumes, self._pod, folder, objects, claimed)
                return PodPlace(self._folder, self._address, volumes)
            except (MountError, OSError) as error:
                self._host.events.record(self._pod, "Warning", "FailedMount", str(error))
                await asyncio.sleep(self._host.timing.setup_retry)
            except KubeError as error:
                _LOG.info("pod %s waits for the API server: %s", self._pod["metadata"]["name"], error)
                await asyncio.sleep(self._host.timing.api_retry)

    def _signal(self, number: int) -> None:
        for container in self._containers:
            container.signal(number)

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._deadline = asyncio.get_running_loop().call_later(max(0.0, seconds), self._deadline_exceeded)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def _deadline_exceeded(self) -> None:
        if self._over:
            return
        self._failure = {"reason": DEADLINE_REASON, "message": DEADLINE_MESSAGE}
        self._host.events.record(self._pod, "Normal", DEADLINE_REASON, DEADLINE_MESSAGE)
        self.stop(self._pod["spec"]["terminationGracePeriodSeconds"])

    def _lose_the_rest(self) -> None:
        """Give containers that will not run any more a final state.

        Containers that were not to run yet, since an init container failed or was stopped, keep waiting, as by the
        kubelet's `TerminatePod`.
        """
        initialized = all(each.exit_code == 0 for each in self._records if each.initial)
        for record in self._records:
            if "terminated" in record.state:
                continue
            if initialized or "waiting" not in record.state:
                record.state = lost()

    def _status(self) -> dict[str, Any]:
        now_in = phase(self._records, self._over)
        failure = self._failure if now_in in ENDED else {}
        if failure:
            now_in = "Failed"
        # The cache may be behind our own last write, so what we know of our own conditions comes from there.
        found = (self._pod.get("status") or {}).get("conditions") or []
        own = {each["type"] for each in self._own_conditions}
        others = [each for each in found if each["type"] not in own]
        now_true = conditions([*others, *self._own_conditions], self._records, now_in)
        self._own_conditions = [each for each in now_true if each["type"] in OWN_CONDITIONS]
        return {
            "phase": now_in,
            "conditions": now_true,
            "hostIP": "127.0.0.1",
            "hostIPs": [{"ip": "127.0.0.1"}],
            "podIP": self._address,
            "podIPs": [{"ip": self._address}],
            "startTime": self._start_time,
            "containerStatuses": [each.status() for each in self._records if not each.initial],
            **(
                {"initContainerStatuses": initial}
                if (initial := [each.status() for each in self._records if each.initial])
                else {}
            ),
            **failure,
        }
