"""A world for `plan`: a job and its pods, a controller that may crash, another that acts on the past, and faults.

Everything random comes from one seed. Writes follow the API server's rules: a name is taken once, a delete misses
another uid, a status write misses a status that has changed.
"""

import random
from datetime import timedelta
from typing import Any

import msgspec
from builders import NOW, JobBuilder, make_mxjob

from mxnet_operator.api import names
from mxnet_operator.api.conditions import is_terminal
from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan import Observed, Plan, PodView, ServiceView, plan
from mxnet_operator.plan.actions import Action, CreatePod, CreateService, DeleteJob, DeletePod, DeleteService, StopPod

EXIT_CODES = (1, 3, 137, 143, 134, 139)
DISRUPTIONS = ("PreemptionByScheduler", "TerminationByKubelet")
GRACE = 3


class World:
    """The job as stored, its children, and the clock."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.job = _some_job(self.random).obj()
        self.pods: dict[str, PodView] = {}
        self.services: dict[str, ServiceView] = {}
        self.now = NOW
        self.deleted = False
        self.version = 0
        # A finished pod that is deleted before anybody saw it, and made again by a stale controller, looks like any
        # other: no controller without finalizers can tell (docs/limits.md). So a schedule has one of the two.
        self.has_stale_looks = self.random.random() < 0.5
        self.failed_uids: set[str] = set()
        self.status_writes = 0
        self._uids = 0
        self._past: list[tuple[int, MXJob, Observed]] = []

    def observe(self) -> Observed:
        return Observed(tuple(self.pods.values()), tuple(self.services.values()))

    def look(self, *, crash: bool = False, stale: bool = False) -> Plan:
        """One reconciliation; with `crash` it ends between two writes, with `stale` it knows only the past."""
        version, job, observed = self.version, self.job, self.observe()
        self._past.append((version, job, observed))
        if stale and self.has_stale_looks:
            version, job, observed = self.random.choice(self._past[-12:])
        answer = plan(job, observed, self.now)
        actions = list(answer.actions)
        if crash:
            actions = actions[: self.random.randint(0, len(actions))]
        for action in actions:
            self._carry_out(job, action)
        if answer.status is not None and not (crash and self.random.random() < 0.5) and version == self.version:
            self._store(answer.status)
        return answer

    def fault(self) -> None:
        """Something happens to a pod, or the user changes his mind."""
        what = self.random.random()
        if what < 0.06:
            suspend = not self.job.spec.run_policy.suspend
            policy = msgspec.structs.replace(self.job.spec.run_policy, suspend=suspend)
            self.job = msgspec.structs.replace(self.job, spec=msgspec.structs.replace(self.job.spec, run_policy=policy))
            self.version += 1
        elif what < 0.12 and self._deletable():
            self._delete(self.random.choice(self._deletable()))
        elif what < 0.2 and self._running():
            pod = self.random.choice(self._running())
            if self.random.random() < 0.3:
                reason = self.random.choice(DISRUPTIONS)
                self._end(pod, phase="Failed", pod_reason="Evicted", disruption=reason)
            else:
                self._end(pod, phase="Failed", exit_code=self.random.choice(EXIT_CODES), reason="Error")
        else:
            self.progress()

    def progress(self) -> None:
        """Time passes, and the kubelet does some of its work."""
        self.now += timedelta(seconds=self.random.choice((0, 1, 5, 30)))
        for name, pod in list(self.pods.items()):
            if self.random.random() < 0.5:
                continue
            if pod.deleting:
                del self.pods[name]
            elif not pod.node_name:
                self.pods[name] = msgspec.structs.replace(pod, node_name="node", scheduled_at=self.now)
            elif pod.phase == "Pending":
                self.pods[name] = msgspec.structs.replace(pod, phase="Running", started_at=self.now)
            elif pod.phase == "Running" and pod.stop_requested:
                self._end(pod, phase="Failed", exit_code=143, pod_reason="DeadlineExceeded")
        if self.random.random() < 0.3:
            for pod in self._ready_to_finish():
                self._end(pod, phase="Succeeded", exit_code=0, reason="Completed")

    def settle(self, rounds: int = 400) -> None:
        """No more faults: the controller looks, the kubelet works, the user lets the job run."""
        if self.job.spec.run_policy.suspend:
            policy = msgspec.structs.replace(self.job.spec.run_policy, suspend=False)
            self.job = msgspec.structs.replace(self.job, spec=msgspec.structs.replace(self.job.spec, run_policy=policy))
            self.version += 1
        for _ in range(rounds):
            self.look()
            self.progress()
            self.now += timedelta(seconds=60)
            quiet = plan(self.job, self.observe(), self.now) == Plan()
            ending = any(pod.deleting or pod.stop_requested for pod in self.pods.values() if pod.exit_code is None)
            if quiet and is_terminal(self.job.status) and not ending:
                return

    def _ready_to_finish(self) -> list[PodView]:
        """A whole gang of one attempt, or the tuners; tracker and servers of a tuning never end by themselves."""
        running = self._running()
        if names.TUNER in self.job.spec.mx_replica_specs:
            return [pod for pod in running if pod.type == names.TUNER]
        wanted = sum(spec.replicas or 0 for spec in self.job.spec.mx_replica_specs.values())
        return running if len(running) == wanted and len({pod.attempt for pod in running}) == 1 else []

    def _deletable(self) -> list[str]:
        return [name for name, pod in self.pods.items() if not self.has_stale_looks or pod.phase != "Succeeded"]

    def _running(self) -> list[PodView]:
        return [pod for pod in self.pods.values() if pod.phase == "Running" and not pod.deleting]

    def _end(self, pod: PodView, **fields: Any) -> None:
        if fields["phase"] == "Failed" and fields.get("pod_reason") != "DeadlineExceeded":
            self.failed_uids.add(pod.uid)
        self.pods[pod.name] = msgspec.structs.replace(pod, finished_at=self.now, **fields)

    def _delete(self, name: str) -> None:
        pod = self.pods[name]
        if pod.node_name and pod.phase in ("Pending", "Running"):
            self.pods[name] = msgspec.structs.replace(pod, deleting=True)
        else:
            del self.pods[name]

    def _store(self, status: MXJobStatus) -> None:
        self.job = msgspec.structs.replace(self.job, status=status)
        self.version += 1
        self.status_writes += 1

    def _carry_out(self, job: MXJob, action: Action) -> None:
        match action:
            case CreateService(name=name):
                self.services.setdefault(name, ServiceView(name=name, uid=self._uid(), owner_uid=job.metadata.uid))
            case DeleteService(name=name, uid=uid):
                if name in self.services and self.services[name].uid == uid:
                    del self.services[name]
            case CreatePod(type=replica_type, index=index, attempt=attempt):
                name = names.replica_name(job.metadata.name, replica_type, index)
                pod = PodView(
                    name=name,
                    uid=self._uid(),
                    owner_uid=job.metadata.uid,
                    type=replica_type,
                    index=index,
                    attempt=attempt,
                )
                self.pods.setdefault(name, pod)
            case DeletePod(name=name, uid=uid):
                if name in self.pods and self.pods[name].uid == uid:
                    self._delete(name)
            case StopPod(name=name, uid=uid):
                if name in self.pods and self.pods[name].uid == uid:
                    self.pods[name] = msgspec.structs.replace(self.pods[name], stop_requested=True)
            case DeleteJob():
                self.deleted = True

    def _uid(self) -> str:
        self._uids += 1
        return f"uid-{self._uids}"


def _some_job(rng: random.Random) -> JobBuilder:
    builder = make_mxjob()
    shape = rng.random()
    if shape < 0.5:
        builder.gang(servers=1, workers=rng.randint(1, 2))
    elif shape < 0.7:
        builder.worker(rng.randint(1, 2))
    else:
        builder.replicas("TunerTracker", 1).replicas("TunerServer", rng.randint(1, 2)).replicas("Tuner", 1)
    builder.restart(rng.choice(["Never", "OnFailure", "Always", "ExitCode", "ExitCode"]))
    builder.run_policy(backoffLimit=rng.randint(0, 3), cleanPodPolicy=rng.choice(["None", "Running", "All"]))
    if rng.random() < 0.2:
        builder.run_policy(suspend=True)
    return builder
