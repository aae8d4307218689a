"""The world of a simulation: API server, two controllers, nodes and users; `do` makes one step of a schedule happen."""

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from simulator.api import JOB, NAMESPACE, PODS, Api, Object
from simulator.clock import Clock
from simulator.controller import Controller, Seen
from simulator.kubelet import Kubelet
from simulator.kueue import Kueue
from simulator.lives import Lives, owner_of
from simulator.schedule import Schedule, Step, pod_name
from simulator.transport import Fault

from mxnet_operator.api.queue_labels import QUEUE_LABEL, QUEUE_PRIORITY_LABEL
from mxnet_operator.local.apiserver.statuses import StatusError
from mxnet_operator.local.apiserver.storage import Change
from mxnet_operator.plan.placement import IGNORED_AFTER
from mxnet_operator.plan.status import RECORD_DELAY

FOREIGN = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}


@dataclass(frozen=True)
class Write:
    """A change in the API server, and the controller that made it, if one did."""

    change: Change
    by: Controller | None

    @property
    def seen(self) -> Seen | None:
        """What its controller knew of the job."""
        return self.by.seen if self.by is not None else None


class World:
    """All parties. `watcher` is told of every write as it happens."""

    def __init__(self, schedule: Schedule, watcher: "Callable[[World, Write], None]") -> None:
        self.setup = schedule.setup
        self.calm = schedule.calm
        self.clock = Clock()
        self.api = Api(self.clock)
        self.lives = Lives()
        self.kubelet = Kubelet(self.api, self.clock, self.lives)
        self.kueue = Kueue(self.api, self.clock, self.setup.queue)
        self.writes = 0
        """Creates, status writes and Events of controllers."""
        self.changes = 0
        """Writes of everybody."""
        self.pauses = 0
        """Times in which nothing happened for so long that counts which no condition came with were written."""
        self.was_unplaced = False
        """Whether nothing happened for so long that pods without a node are named, and again as each gets one."""
        self.condemned: set[str] = set()
        """uids of pods that a status has once named as being replaced."""
        self.counted: set[str] = set()
        """uids of pods whose failure was there when failures were counted."""
        self.gone_until: dict[tuple[str, object], int] = {}
        """For each job's uid and kind of child the revision in which one of it was last there and went."""
        self.told_of: set[str] = set()
        """uids of pods since whose creation a controller has written a status."""
        self.workloads: dict[int, Object] = {}
        """Each version of each Workload that a job has had."""
        self.unprovoked = 0
        """How often controllers have written a Workload since anybody else wrote anything, or time passed."""
        self.restarts_as_gang = False
        """Whether the job is restarted whole: as it was when it was started, or last resumed."""
        self._actor: Controller | None = None
        self._watcher = watcher
        self.api.store.storage.observe(self._changed)
        self.create_job()
        self.controllers = {
            name: Controller(
                name,
                self.api,
                self.clock,
                self._acts,
                has_queues=bool(self.setup.queue),
            )
            for name in ("a", "b")
        }
        self._users: dict[str, Callable[..., object]] = {
            "kubelet": lambda label: self.kubelet.go_on(pod_name(label)),
            "exit": lambda label, *how: self.kubelet.exit(pod_name(label), *how),
            "finish": self._finish,
            "evict": lambda label: self.kubelet.evict(pod_name(label)),
            "reject": lambda label: self.kubelet.reject(pod_name(label)),
            "unschedulable": self._unschedulable,
            "disrupt": lambda label, how: self.kubelet.disrupt(pod_name(label), how),
            "hang": lambda label: self.kubelet.hang(pod_name(label)),
            "lose node": self.kubelet.lose,
            "node off": self.kubelet.put_out_of_service,
            "remove node": self.kubelet.remove_node,
            "shut down": self.kubelet.shut_down,
            "reboot": self.kubelet.reboot,
            "node up": self.kubelet.up,
            "collect": self.kubelet.collect,
            "delete pod": lambda label, *grace: self.kubelet.delete(pod_name(label), *grace),
            "suspend": lambda: self._set_policy(suspend=True),
            "resume": lambda: self._set_policy(suspend=False),
            "backoffLimit": lambda limit: self._set_policy(backoffLimit=limit),
            "edit": lambda field, value: self._set_policy(**{field: value}),
            "delete job": lambda: self.api.delete(self.api.jobs, JOB),
            "create job": self.create_job,
            "squat": self._squat,
            "collect garbage": self.api.collector.run,
            "kueue": self.kueue.act,
            "rival": self.kueue.rival,
            "rival ends": self.kueue.end_rival,
            "check": self.kueue.check,
            "activate": self.kueue.activate,
            "delete workload": self.kueue.delete,
            "stop queues": lambda stopped: setattr(self.kueue, "stopped", stopped),
            "queue": lambda queue: self.api.label_job(QUEUE_LABEL, queue),
            "priority": lambda name: self.api.label_job(QUEUE_PRIORITY_LABEL, name),
            "blind": lambda who, blind: self.controllers[who].be_blind(blind),
            "wait": self._wait,
            "step clock": self._step_clock,
        }
        self._controls: dict[str, Callable[..., Awaitable[None]]] = {
            "look": self._look,
            "release": lambda who: self.controllers[who].release(),
            "die": lambda who: self.controllers[who].die(),
            "hear": self._hear,
            "relist": self._relist,
        }

    async def do(self, step: Step) -> None:
        """Make a step happen; one that makes no sense as things are changes nothing."""
        what, *how = step
        if what in self._controls:
            await self._controls[what](*how)
        else:
            with contextlib.suppress(StatusError):
                self._users[what](*how)

    async def close(self) -> None:
        for controller in self.controllers.values():
            await controller.die()

    @property
    def job(self) -> Object | None:
        return self.api.job

    @property
    def policy(self) -> Object:
        """The job's runPolicy as its user has it by now."""
        return self.setup.policy if self.job is None else self.policy_of(self.job)

    @staticmethod
    def policy_of(job: Object) -> Object:
        """A job's runPolicy."""
        return job["spec"].get("runPolicy") or {}

    def create_job(self) -> None:
        """The user's job, or one more of its name after it was deleted."""
        self.api.store.create(self.api.jobs, NAMESPACE, self.setup.manifest())

    def _set_policy(self, **fields: Any) -> None:
        self.api.patch_job({"runPolicy": fields})

    def _finish(self) -> None:
        """All who decide about success end well."""
        for label in self.setup.deciders:
            self.kubelet.exit(pod_name(label), 0)

    def _squat(self, label: str) -> None:
        """Somebody else takes a pod's name."""
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod_name(label)}, **FOREIGN}
        self.api.store.create(PODS, NAMESPACE, pod)

    def _unschedulable(self, label: str) -> None:
        """The scheduler has no room for a pod, and rejects the rest of its gang with it."""
        for each in self.setup.labels if self.restarts_as_gang else (label,):
            self.kubelet.unschedulable(pod_name(each))

    def _wait(self, seconds: float) -> None:
        self.pauses += seconds >= RECORD_DELAY.total_seconds()
        self.was_unplaced |= seconds >= IGNORED_AFTER.total_seconds()
        self.clock.seconds += seconds
        self.unprovoked = 0

    def _step_clock(self, party: str, seconds: float) -> None:
        self.clock.off[party] = self.clock.off.get(party, 0.0) + seconds

    async def _look(self, who: str, *fault: Any) -> None:
        await self.controllers[who].look(Fault(*fault) if fault else None)

    async def _hear(self, who: str, what: str = "", events: int | None = None) -> None:
        feeds = self.controllers[who].feeds
        if not what:
            self.controllers[who].hear()
        elif what in feeds:
            feeds[what].hear(events)

    async def _relist(self, who: str, what: str) -> None:
        feeds = self.controllers[who].feeds
        if what in feeds:
            feeds[what].relist()

    def _acts(self, controller: Controller | None) -> None:
        self._actor = controller

    def _changed(self, change: Change) -> None:
        self.changes += 1
        is_new = change.before is None
        if change.resource == PODS.key and is_new:
            self.lives.begin(change.object, ((self.job or {}).get("status") or {}).get("restarts", 0))
        if change.after is None and change.resource in self.api.child_keys:
            self.gone_until[owner_of(change.object), change.resource] = change.revision
        if self._actor is None:
            self.unprovoked = 0
        if change.resource == self.api.workloads.key:
            self.unprovoked += self._actor is not None
            self.workloads[change.revision] = change.object
        if change.resource == self.api.jobs.key:
            if not (is_started(change.before) and is_started(change.after)):
                self.restarts_as_gang = self.setup.restarts_as_gang(self.policy_of(change.object).get("restartScope"))
            self.condemned.update((change.object.get("status") or {}).get("restartingPods") or ())
            if self._actor is not None and not self._actor.lost_a_reply:
                self.told_of.update(pod["metadata"]["uid"] for pod in self.api.pods())
        if self._actor is not None and (is_new or change.resource == self.api.jobs.key):
            self.writes += 1
        self._watcher(self, Write(change, self._actor))


def is_started(job: Object | None) -> bool:
    """Whether a job has begun and isn't suspended: what it is restarted as stays then."""
    conditions = ((job or {}).get("status") or {}).get("conditions") or ()
    return bool(conditions) and not any((each["type"], each["status"]) == ("Suspended", "True") for each in conditions)
