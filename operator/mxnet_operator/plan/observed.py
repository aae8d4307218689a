"""What the controller sees of a job's children: small frozen structs, projected from the watch stream."""

from datetime import datetime, timedelta
from typing import ClassVar, Literal

import msgspec

from mxnet_operator.plan.children import ChildRule, ChildView
from mxnet_operator.plan.services import SERVICES
from mxnet_operator.views.pods import Phase


class PodView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One pod of a job.

    `exit_code`, `reason` and `message` are those of the terminated `mxnet` container (the pod's phase says nothing
    while a sidecar runs on); `exit_code` is None until it has ended. Where an init container's failure kept it from
    starting they are that one's, which `init_container` names. `pod_reason` and `pod_message` are the pod's own
    (Evicted, DeadlineExceeded). Times are UTC.
    """

    name: str
    uid: str
    owner_uid: str
    type: str
    """The replica type as `names.REPLICA_TYPES` spells it."""
    index: int
    attempt: int = 0
    phase: Phase = "Pending"
    deleting: bool = False
    delete_by: datetime | None = None
    """When a pod that is being deleted should be gone: its deletionTimestamp, which includes the grace period."""
    forced: bool = False
    """Whether it was deleted without any grace, and yet is still there."""
    mislabelled: bool = False
    """Whether somebody changed the labels by which it is watched, and by which its Services find it."""
    finalizers: tuple[str, ...] = ()
    deleted_at: datetime | None = None
    """When it was asked to go by a deletion."""
    taken_at: datetime | None = None
    """When it was asked to go, by whomever: deleted or disrupted."""
    stop_requested: bool = False
    """Whether spec.activeDeadlineSeconds is 1: the controller's way to stop a pod and keep its logs."""
    node_name: str = ""
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    init_container: str = ""
    pod_reason: str = ""
    pod_message: str = ""
    disruption: str = ""
    """The reason of the pod's condition DisruptionTarget, while that is true."""
    unschedulable: str = ""
    """The scheduler's own words while it finds no node for the pod, or may not place it yet (a scheduling gate)."""
    scheduler_name: str = ""
    created_at: datetime | None = None
    waiting_reason: str = ""
    """Why `waiting_container` does not start, in the kubelet's words: the first that can't, else the `mxnet` one."""
    waiting_message: str = ""
    waiting_container: str = ""
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def stopped_by_node(self) -> bool:
        """Whether its kubelet ended it for a node's shutdown or for a critical pod: the pod's reason says so.

        Kubelets before 1.26 don't set the condition DisruptionTarget, those before 1.21 say Shutdown.
        """
        return self.phase == "Failed" and self.pod_reason in ("Terminated", "Preempting", "Shutdown")

    @property
    def end_is_unknown(self) -> bool:
        """Whether nobody saw its end, since its node went down: the exit code (255, 137) is made up."""
        return bool(self.exit_code) and self.reason in ("Unknown", "ContainerStatusUnknown")

    @property
    def ended_at(self) -> datetime | None:
        """When it ended or was asked to go, whichever came first."""
        return min((time for time in (self.finished_at, self.taken_at) if time is not None), default=None)

    @property
    def was_taken(self) -> bool:
        """Whether it was deleted or disrupted before it ended by itself, so that its exit code says nothing.

        An exit 0 is never believed then, whatever the clocks say: a program that ends well on SIGTERM is not done.
        """
        if not (self.deleting or self.disruption or self.stopped_by_node):
            return False
        if not self.exit_code or self.finished_at is None or self.taken_at is None:
            return True
        return self.finished_at >= self.taken_at


class NodeView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node with a pod that won't go.

    OutOfService is one that is not ready and that an administrator has given the taint of this name, as Kubernetes' own
    pod garbage collector has it (KEP-2268); Forbidden one that the controller has no right to read.
    """

    OUT_OF_SERVICE: ClassVar[str] = "node.kubernetes.io/out-of-service"

    name: str
    state: Literal["Present", "Gone", "OutOfService", "Forbidden"]


class Observed(msgspec.Struct, frozen=True):
    """The children of one job as the caches have them; those of other owners may be among them."""

    pods: tuple[PodView, ...] = ()
    children: tuple[ChildView, ...] = ()
    """All but pods."""
    nodes: tuple[NodeView, ...] = ()
    """Those of `nodes_in_doubt` only, read from the server for this look."""
    workflow_over: str = ""
    """Which Argo Workflow of a job that `goes_with_workflow` is at its end, and why; empty where none is."""
    lease_left: timedelta | None = None
    """How long the lease of a job that `has_lease` still runs, on the controller's own clock; None where none is."""
    rules: tuple[ChildRule, ...] = (SERVICES,)
    """Of the kinds of children, those that the server serves."""

    def owned_by(self, uid: str) -> "Observed":
        """Only what belongs to the job with this uid: a name alone proves nothing."""
        return msgspec.structs.replace(
            self,
            pods=tuple(pod for pod in self.pods if pod.owner_uid == uid),
            children=tuple(child for child in self.children if child.owner_uid == uid),
        )

    def without(self, pods: tuple[PodView, ...]) -> "Observed":
        """All but these pods."""
        uids = {pod.uid for pod in pods}
        kept = tuple(pod for pod in self.pods if pod.uid not in uids)
        return msgspec.structs.replace(self, pods=kept) if uids else self
