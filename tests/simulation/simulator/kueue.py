"""Kueue of a simulation: it reserves a small quota for Workloads, evicts them, and queues them again.

One `act` is one write, in the order of Kueue 0.15's own (pkg/controller/core/workload_controller.go, pkg/scheduler), so
that everybody else can come between two. Its quota counts pods. The Workloads besides the job's are rivals, whose
controllers do at once what Kueue asks of them.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from simulator.api import FLAVORS, NAMESPACE, Api, Object
from simulator.clock import START, Clock
from simulator.lives import owner_of

from mxnet_operator.local.apiserver.patch import MERGE_PATCH
from mxnet_operator.local.apiserver.store import WriteOptions, timestamp

QUEUES = ("a", "b")
"""LocalQueues that there are, both of the one ClusterQueue."""
RIVALS = ("rival-0", "rival-1")
CHECK = "provisioned"
BACKOFF = 60
"""Seconds for which a job that was not ready in time stays out of its queue, the first time; then twice as long."""


class Kueue:
    """One ClusterQueue.

    `settings`: its `quota` in pods; whether it has an admission `check`; of waitForPodsReady the `timeout` and the
    `recovery` timeout in seconds, and the `limit` of requeues.
    """

    def __init__(self, api: Api, clock: Clock, settings: Mapping[str, int]) -> None:
        self._api, self._clock, self._settings = api, clock, settings
        self._wall = clock.wall("kueue")
        self.stopped = False
        """Whether its LocalQueues hold and drain."""
        self._reservations = 0

    def act(self) -> bool:
        """Make Kueue's next write; False where nothing is to be done now."""
        found = self._api.queue_workloads()
        return bool(found) and (any(self._reconcile(each) for each in found) or self._schedule(found))

    @property
    def due(self) -> float | None:
        """The second at which it does something by itself; None where it waits for others."""
        times = (at for each in self._api.queue_workloads() for at in self._times(each))
        seconds = ((at - START).total_seconds() for at in times)
        return min((each for each in seconds if each > self._clock.seconds), default=None)

    def help(self) -> bool:
        """Let an administrator end what keeps a job waiting; False where nothing does."""
        if self.stopped:
            self.stopped = False
            return True
        return self.end_rival() or any(self._mend(each) for each in self._of_job())

    def end_rival(self) -> bool:
        """The job of an admitted rival ends; False where there is none."""
        for each in self._api.queue_workloads():
            if not owner_of(each) and has_quota(each):
                self._api.delete(self._api.workloads, each["metadata"]["name"])
                return True
        return False

    def rival(self, number: int, pods: int, priority: int) -> None:
        """Somebody else's Workload enters the queue."""
        body = {
            "apiVersion": self._api.workloads.api_version,
            "kind": "Workload",
            "metadata": {"name": RIVALS[number], "namespace": NAMESPACE},
            "spec": {"queueName": QUEUES[0], "priority": priority, "podSets": [{"name": "main", "count": pods}]},
        }
        self._api.store.create(self._api.workloads, NAMESPACE, body)

    def check(self, state: str) -> None:
        """What the job's admission check waits for has happened, or not."""
        for each in self._of_job():
            if (each.get("status") or {}).get("admissionChecks"):
                self._write(each, admissionChecks=[{"name": CHECK, "state": state}])

    def activate(self, active: bool) -> None:
        """An administrator deactivates the job's Workload, or has it queue again."""
        for each in self._of_job():
            self._patch(each, {"spec": {"active": active}})

    def delete(self) -> None:
        """Somebody deletes the job's Workload."""
        for each in self._of_job():
            self._api.delete(self._api.workloads, each["metadata"]["name"])

    def _of_job(self) -> Iterator[Object]:
        return (each for each in self._api.queue_workloads() if owner_of(each))

    def _mend(self, workload: Object) -> bool:
        """Let what a Workload waits for happen."""
        if is_true(workload, "Finished"):
            return False
        checks = (workload.get("status") or {}).get("admissionChecks") or ()
        if not workload["spec"].get("active", True) and not has_quota(workload):
            self.activate(True)
        elif has_quota(workload) and not is_true(workload, "Evicted") and any(c["state"] != "Ready" for c in checks):
            self.check("Ready")
        else:
            return False
        return True

    def _reconcile(self, workload: Object) -> bool:
        if is_true(workload, "Finished"):
            return False
        if not owner_of(workload) and is_true(workload, "Evicted") and has_quota(workload):
            return self._returned(workload)
        return self._activity(workload) or self._admission(workload)

    def _returned(self, rival: Object) -> bool:
        told = _set(rival, "QuotaReserved", "False", "Pending", self._now)
        told = _set(rival, "Admitted", "False", "NoReservation", self._now, told=told)
        return self._write(rival, conditions=told, admission=None)

    def _activity(self, workload: Object) -> bool:
        """Deactivate and reactivate, and queue again what has waited long enough."""
        spec, status = workload["spec"], workload.get("status") or {}
        requeues = status.get("requeueState")
        evicted, target = condition(workload, "Evicted"), condition(workload, "DeactivationTarget")
        if not spec.get("active", True):
            if evicted.get("status") != "True":
                cause = f"DueTo{target['reason']}" if target else ""
                return self._evict(workload, f"Deactivated{cause}", "The workload is deactivated", requeueState=None)
            return requeues is not None and self._write(workload, requeueState=None)
        if target.get("status") == "True":
            self._patch(workload, {"spec": {"active": False}})
            return True
        if requeues and requeues.get("requeueAt"):
            if self._requeues_at(requeues) > self._wall():
                return False
            if not has_quota(workload):
                return self._write(workload, requeueState={"requeueAt": None})
        why = _held_out(workload)
        if why == "Deactivated":
            return self._requeue(workload, "Reactivated")
        if why in ("PodsReadyTimeout", "AdmissionCheck"):
            return self._requeue(workload, "BackoffFinished")
        if why == "LocalQueueStopped" and not self.stopped:
            return self._requeue(workload, "LocalQueueRestarted")
        return False

    def _admission(self, workload: Object) -> bool:
        """Follow checks, the state of the queue, and the time that a job has to be ready."""
        status, queue = workload.get("status") or {}, workload["spec"]["queueName"]
        if self._waits_for_backoff(workload):
            return False
        checks = status.get("admissionChecks")
        if self._settings.get("check") and queue in QUEUES and owner_of(workload) and not checks:
            return self._write(workload, admissionChecks=[{"name": CHECK, "state": "Pending"}])
        if not has_quota(workload):
            words = f"LocalQueue {queue} doesn't exist" if queue not in QUEUES else f"LocalQueue {queue} is inactive"
            return (queue not in QUEUES or self.stopped) and self._refuse(workload, "Inadmissible", words)
        states = {each["state"] for each in checks or ()}
        if not is_true(workload, "Admitted"):
            if states <= {"Ready"}:
                return self._write(workload, conditions=_set(workload, "Admitted", "True", "Admitted", self._now))
        elif self.stopped and not is_true(workload, "Evicted"):
            return self._evict(workload, "LocalQueueStopped", "The LocalQueue is stopped")
        if is_true(workload, "Evicted"):
            return False
        if "Rejected" in states:
            return self._deactivate(workload, "AdmissionCheck")
        if "Retry" in states:
            return self._evict(workload, "AdmissionCheck", "At least one admission check is false")
        if not is_true(workload, "Admitted") and (self.stopped or queue not in QUEUES):
            return self._refuse(workload, "Inadmissible", f"LocalQueue {queue} is stopped")
        return self._time_out(workload)

    def _time_out(self, workload: Object) -> bool:
        late = self._late_at(workload)
        if late is None or late > self._wall():
            return False
        requeues = (workload.get("status") or {}).get("requeueState") or {}
        count, limit = requeues.get("count", 0) + 1, self._settings.get("limit")
        if limit is not None and count > limit:
            return self._deactivate(workload, "RequeuingLimitExceeded")
        again = self._wall() + timedelta(seconds=BACKOFF * 2 ** (count - 1))
        state = {"count": count, "requeueAt": timestamp(again)}
        return self._evict(workload, "PodsReadyTimeout", "Exceeded the PodsReady timeout", requeueState=state)

    def _late_at(self, workload: Object) -> datetime | None:
        """When a job is evicted that isn't ready by then."""
        ready, admitted = condition(workload, "PodsReady"), condition(workload, "Admitted")
        is_late = is_true(workload, "Admitted") and not is_true(workload, "Evicted") and ready.get("status") != "True"
        if not is_late or is_true(workload, "Finished") or not owner_of(workload):  # A rival's pods are ready at once.
            return None
        if not ready or ready["reason"] == "WaitForStart":
            since, seconds = admitted["lastTransitionTime"], self._settings.get("timeout")
        else:
            since, seconds = ready["lastTransitionTime"], self._settings.get("recovery")
        return None if seconds is None else datetime.fromisoformat(since) + timedelta(seconds=seconds)

    def _times(self, workload: Object) -> Iterator[datetime]:
        if (late := self._late_at(workload)) is not None:
            yield late
        requeues = (workload.get("status") or {}).get("requeueState") or {}
        if requeues.get("requeueAt"):
            yield self._requeues_at(requeues)

    def _waits_for_backoff(self, workload: Object) -> bool:
        requeues = (workload.get("status") or {}).get("requeueState") or {}
        return bool(requeues.get("requeueAt")) and self._requeues_at(requeues) > self._wall()

    @staticmethod
    def _requeues_at(requeues: Object) -> datetime:
        return datetime.fromisoformat(requeues["requeueAt"])

    def _schedule(self, found: list[Object]) -> bool:
        """Reserve quota for the first that fits, by priority and age; of who is less urgent, take it."""
        waiting = [each for each in found if self._may_be_admitted(each)]
        holding = [each for each in found if has_quota(each) and not is_true(each, "Finished")]
        free = self._settings.get("quota", 0) - sum(map(_size, holding))
        for each in sorted(waiting, key=_order):
            if _size(each) <= free:
                return self._reserve(each)
            less_urgent = [other for other in holding if other["spec"]["priority"] < each["spec"]["priority"]]
            if _size(each) <= free + sum(map(_size, less_urgent)):
                for other in less_urgent:
                    if not is_true(other, "Evicted"):
                        return self._evict(other, "Preempted", "Preempted to accommodate a workload")
            if self._refuse(each, "Pending", "couldn't assign flavors: insufficient unused quota"):
                return True
        return False

    def _may_be_admitted(self, workload: Object) -> bool:
        waits = not has_quota(workload) and not is_true(workload, "Finished") and not _held_out(workload)
        served = workload["spec"].get("active", True) and workload["spec"]["queueName"] in QUEUES and not self.stopped
        return waits and served and not self._waits_for_backoff(workload)

    def _reserve(self, workload: Object) -> bool:
        flavor = FLAVORS[self._reservations % len(FLAVORS)]
        self._reservations += 1
        told = _set(workload, "QuotaReserved", "True", "QuotaReserved", self._now)
        for kind in ("Evicted", "Preempted"):
            if is_true(workload, kind):
                told = _set(workload, kind, "False", "QuotaReserved", self._now, told=told)
        checks = (workload.get("status") or {}).get("admissionChecks") or ()
        if all(each["state"] == "Ready" for each in checks):
            told = _set(workload, "Admitted", "True", "Admitted", self._now, told=told)
        sets = [{"name": each["name"], "flavors": {"cpu": flavor}} for each in workload["spec"]["podSets"]]
        return self._write(workload, conditions=told, admission={"clusterQueue": "team", "podSetAssignments": sets})

    def _refuse(self, workload: Object, reason: str, message: str) -> bool:
        """Say why no quota is reserved, and take it back where no job was admitted to it; False if that is said."""
        told = _set(workload, "QuotaReserved", "False", reason, self._now, message=message)
        if told == ((workload.get("status") or {}).get("conditions") or []):
            return False
        return self._write(workload, conditions=told, admission=None)

    def _evict(self, workload: Object, reason: str, message: str, **fields: Any) -> bool:
        told = _set(workload, "Evicted", "True", reason, self._now, message=message)
        if reason == "Preempted":
            told = _set(workload, "Preempted", "True", "InClusterQueue", self._now, told=told)
        told = [each for each in told if each["type"] != "DeactivationTarget"]
        if checks := (workload.get("status") or {}).get("admissionChecks"):
            fields["admissionChecks"] = [{**each, "state": "Pending"} for each in checks]
        return self._write(workload, conditions=told, **fields)

    def _deactivate(self, workload: Object, reason: str) -> bool:
        told = _set(workload, "DeactivationTarget", "True", reason, self._now)
        return self._write(workload, conditions=told)

    def _requeue(self, workload: Object, reason: str) -> bool:
        return self._write(workload, conditions=_set(workload, "Requeued", "True", reason, self._now))

    @property
    def _now(self) -> str:
        return timestamp(self._wall())

    def _write(self, workload: Object, **status: Any) -> bool:
        self._patch(workload, {"status": status}, "status")
        return True

    def _patch(self, workload: Object, body: Object, subresource: str = "") -> None:
        name = workload["metadata"]["name"]
        self._api.store.patch(
            self._api.workloads, NAMESPACE, name, MERGE_PATCH, body, options=WriteOptions(subresource)
        )


def condition(workload: Object, kind: str) -> Object:
    """A condition of a Workload; empty where it has none."""
    found = (workload.get("status") or {}).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), {})


def is_true(workload: Object, kind: str) -> bool:
    return condition(workload, kind).get("status") == "True"


def has_quota(workload: Object) -> bool:
    """Whether quota is reserved for a Workload."""
    return is_true(workload, "QuotaReserved")


def _held_out(workload: Object) -> str:
    """Why Kueue keeps a Workload out of its queue; empty where it doesn't."""
    found = condition(workload, "Requeued")
    return found["reason"] if found.get("status") == "False" else ""


def _size(workload: Object) -> int:
    return sum(each["count"] for each in workload["spec"]["podSets"])


def _order(workload: Object) -> tuple[int, str, str]:
    metadata = workload["metadata"]
    return -workload["spec"]["priority"], metadata["creationTimestamp"], metadata["name"]


def _set(
    workload: Object, kind: str, status: str, reason: str, now: str, *, message: str = "", told: Any = None
) -> list[Object]:
    """The conditions with this one; its time is that of its last flip."""
    found = told if told is not None else (workload.get("status") or {}).get("conditions") or []
    old = next((each for each in found if each["type"] == kind), None)
    at = old["lastTransitionTime"] if old is not None and old["status"] == status else now
    new = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}
    return [new if each is old else each for each in found] if old is not None else [*found, new]
