"""Kueue's Workload: as the API server has it, as a job sees it, and the changes that a job makes to it.

The conditions and their words are those of Kueue's own integrations (sigs.k8s.io/kueue,
pkg/controller/jobframework/reconciler.go), which its queues go by.
"""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from mxnet_operator.api.pod_additions import Pairs, Toleration
from mxnet_operator.integrations.child_kinds import Child, KindsState
from mxnet_operator.plan.actions import ChangeChild, CreateChild, DeleteChild
from mxnet_operator.plan.observed import ChildView
from mxnet_operator.readers.metadata import Meta, job_of
from mxnet_operator.readers.pods import Wire

GROUP: Final = "kueue.x-k8s.io"
ASKS_FOR_ANNOTATION: Final = "mxjob.kubeflow.org/asks-for"
"""Annotation of a Workload: digest of its requests; a job with other requests needs another Workload."""
ADMITTED: Final = "Admitted"
EVICTED: Final = "Evicted"
FINISHED: Final = "Finished"
PODS_READY: Final = "PodsReady"
QUOTA_RESERVED: Final = "QuotaReserved"
REQUEUED: Final = "Requeued"


class WorkloadCondition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A condition of a Workload; all of it, since one is changed by writing all of them.

    Its schema requires every field but the last, be a message empty.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | msgspec.UnsetType = msgspec.UNSET


class PodSetUpdate(Wire, frozen=True):
    """Additions of an admission check to the pods of one type."""

    name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class AdmissionCheck(Wire, frozen=True):
    """The state of an admission check: what else than quota an admission waits for."""

    name: str = ""
    state: str = ""
    message: str = ""
    pod_set_updates: list[PodSetUpdate] | None = None


class Assignment(Wire, frozen=True):
    """The flavors from which the pods of one type take their resources."""

    name: str = ""
    flavors: dict[str, str] | None = None
    topology_assignment: Any = None


class _Admission(Wire, frozen=True):
    cluster_queue: str = ""
    pod_set_assignments: list[Assignment] | None = None


class WorkloadSpec(Wire, frozen=True):
    active: bool = True


class WorkloadStatus(Wire, frozen=True):
    """Status of a Workload, as written by Kueue."""

    conditions: list[WorkloadCondition] | None = None
    admission: _Admission | None = None
    admission_checks: list[AdmissionCheck] | None = None


class ResourceFlavor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A kind of nodes that quota is for; `problem` says why it can't be read."""

    name: str
    node_labels: Pairs = ()
    tolerations: tuple[Toleration, ...] = ()
    problem: str = ""


class QueuePriority(msgspec.Struct, frozen=True, gc=False):
    """The class by which a queue orders a job, and its value; without a name, that of the cluster's default class."""

    kind: Literal["WorkloadPriorityClass", "PriorityClass"]
    name: str
    value: int = 0
    problem: str = ""
    """Why it can't be read."""


_REQUEUED_AT_ONCE: Final = frozenset({"Preempted", "NodeFailures"})
"""Why a Workload is evicted that Kueue may admit again at once; after anything else it says when itself."""
_DEACTIVATED: Final = "Deactivated"
_WAITS_FOR_START: Final = WorkloadCondition(PODS_READY, "False", "WaitForStart", "Not all pods are ready or succeeded")
_RECOVERING: Final = frozenset({"WaitForRecovery", "Recovered"})


class QueueWorkload(ChildView, frozen=True, kw_only=True, gc=False):
    """A Workload of Kueue's that a job owns."""

    resource_version: str = ""
    asks_for: str = ""
    """The digest of what it asks for."""
    active: bool = True
    cluster_queue: str = ""
    assignments: tuple[Assignment, ...] = ()
    checks: tuple[AdmissionCheck, ...] = ()
    conditions: tuple[WorkloadCondition, ...] = ()

    def condition(self, condition_type: str) -> WorkloadCondition | None:
        return next((each for each in self.conditions if each.type == condition_type), None)

    def is_true(self, condition_type: str) -> bool:
        found = self.condition(condition_type)
        return found is not None and found.status == "True"

    @property
    def has_quota(self) -> bool:
        return self.is_true(QUOTA_RESERVED)

    @property
    def is_evicted(self) -> bool:
        """Whether Kueue wants its quota back."""
        return self.is_true(EVICTED)

    @property
    def is_admitted(self) -> bool:
        """Whether the job may run."""
        return self.is_true(ADMITTED) and not self.is_evicted and not self.is_true(FINISHED) and not self.deleting


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """Observation of a job's queue, read for one reconciliation."""

    kinds: KindsState = KindsState("Absent")
    """Whether the API server serves Workloads in a version that this controller knows."""
    workload: QueueWorkload | None = None
    """Workload that stands for the job in its queue."""
    flavors: tuple[ResourceFlavor, ...] = ()
    """ResourceFlavors of `policy.flavors_wanted`."""
    priority: QueuePriority | None = None
    """Class of `policy.priority_wanted`."""


class CreateQueueWorkload(CreateChild, frozen=True, gc=False):
    """Create the Kueue Workload by which a job waits in its queue; `asks_for` is a digest of its requests."""

    asks_for: str
    priority: QueuePriority


class ChangeQueueWorkload(ChangeChild, frozen=True, gc=False):
    """Update the requests of a Workload without quota to those of the job as it is now."""

    needs_newest_job = True
    resource_version: str
    asks_for: str
    priority: QueuePriority


class SetQueueConditions(ChangeChild, frozen=True, gc=False):
    """Replace all conditions of a Workload; with `gives_quota_back`, end its admission."""

    resource_version: str
    conditions: tuple[WorkloadCondition, ...]
    gives_quota_back: bool = False

    @property
    def needs_fresh_pods(self) -> bool:
        """Whether it ends the admission: the job must have no pods by then."""
        return self.gives_quota_back or any((each.type, each.status) == (FINISHED, "True") for each in self.conditions)


class DeleteQueueWorkload(DeleteChild, frozen=True, gc=False):
    """Delete a Workload, and with it its quota and its place, if it still is of this version."""

    needs_newest_job = True
    needs_fresh_pods = True
    resource_version: str


def quota_returned(workload: QueueWorkload, now: datetime) -> SetQueueConditions:
    """Give back the quota of an evicted Workload, whose job has no pods any more."""
    evicted = workload.condition(EVICTED)
    why, message = (evicted.reason, evicted.message) if evicted is not None else ("Pending", "")
    requeued = "True" if why in _REQUEUED_AT_ONCE else "False"
    if why.startswith(_DEACTIVATED):  # Kueue queues one again that is active by then only if its reason is just that.
        why = _DEACTIVATED
    changes = [
        WorkloadCondition(QUOTA_RESERVED, "False", "Pending", message),
        WorkloadCondition(ADMITTED, "False", "NoReservation", "The workload has no reservation"),
        WorkloadCondition(REQUEUED, requeued, why, message),
    ]
    if workload.condition(PODS_READY) is not None:
        # One that waits for recovery would be evicted as soon as it is admitted again: Kueue counts from this condition
        # then, and else from the admission.
        changes.append(_WAITS_FOR_START)
    return _written(workload, changes, now, gives_quota_back=True)


def finished(workload: QueueWorkload, *, succeeded: bool, message: str, now: datetime) -> SetQueueConditions:
    """Give back the quota of a job that is over."""
    reason = "Succeeded" if succeeded else "Failed"
    return _written(workload, [WorkloadCondition(FINISHED, "True", reason, message)], now)


def pods_ready(workload: QueueWorkload, now: datetime, *, ready: bool) -> SetQueueConditions | None:
    """Say whether all pods of an admitted job run; None where the Workload says so already.

    Kueue evicts a job that doesn't get there in time, where its administrator has set waitForPodsReady.
    """
    old = workload.condition(PODS_READY)
    if old is not None and (old.status == "True") == ready:
        return None
    if ready:
        reason = "Recovered" if old is not None and old.reason in _RECOVERING else "Started"
        new = WorkloadCondition(PODS_READY, "True", reason, "All pods reached readiness and the workload is running")
    elif old is None:
        new = _WAITS_FOR_START
    else:
        new = WorkloadCondition(
            PODS_READY, "False", "WaitForRecovery", "At least one pod has failed, waiting for recovery"
        )
    return _written(workload, [new], now)


def _written(
    workload: QueueWorkload, changes: list[WorkloadCondition], now: datetime, *, gives_quota_back: bool = False
) -> SetQueueConditions:
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    found = {each.type: each for each in workload.conditions}
    for change in changes:
        old = found.get(change.type)
        flipped = old is None or old.status != change.status
        at = since if flipped or old is None else old.last_transition_time
        found[change.type] = msgspec.structs.replace(
            change,
            message=change.message[:_LONGEST],
            last_transition_time=at,
            observed_generation=old.observed_generation if old is not None else msgspec.UNSET,
        )
    return SetQueueConditions(
        workload.name, workload.uid, workload.resource_version, tuple(found.values()), gives_quota_back
    )


_LONGEST: Final = 32 * 1024
"""Characters of a condition's message that the API takes (metav1.Condition)."""


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    asks_for: Annotated[str, msgspec.Meta()] = msgspec.field(default="", name=ASKS_FOR_ANNOTATION)


class _Meta(Meta, frozen=True):
    annotations: _Annotations | None = None


class _Workload(Wire, frozen=True):
    metadata: _Meta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


_workloads: Final = msgspec.json.Decoder(_Workload)


def project_workload(raw: msgspec.Raw) -> Child[QueueWorkload] | None:
    """Return a Workload for the cache; None if no job controls it."""
    workload = _workloads.decode(raw)
    meta, status = workload.metadata, workload.status
    job = job_of(meta)
    if job is None:
        return None
    admission = status.admission
    view = QueueWorkload(
        name=meta.name,
        uid=meta.uid,
        owner_uid=job[1],
        deleting=meta.deletion_timestamp is not None,
        resource_version=meta.resource_version,
        asks_for=meta.annotations.asks_for if meta.annotations is not None else "",
        active=workload.spec.active,
        cluster_queue=admission.cluster_queue if admission is not None else "",
        assignments=tuple(admission.pod_set_assignments or ()) if admission is not None else (),
        checks=tuple(status.admission_checks or ()),
        conditions=tuple(status.conditions or ()),
    )
    return Child(job[0], view)
