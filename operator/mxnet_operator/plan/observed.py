"""Observed children of a job: small frozen structs, projected from the watch stream."""

from datetime import datetime, timedelta
from typing import ClassVar, Final, Literal, TypeVar

import msgspec

from mxnet_operator.readers.pods import Phase

F = TypeVar("F")
EVICTED: Final = "Evicted"
"""Reason of a pod that its kubelet evicted, even for its own limits: it counts, whatever its exit code."""


class PodView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Observed pod of a job.

    `exit_code`, `reason` and `message` are those of the terminated `mxnet` container (the pod's phase says nothing
    while a sidecar runs on); `exit_code` is None until it has ended. Where an init container's failure kept it from
    starting they are that one's, which `init_container` names. `pod_reason` and `pod_message` are the pod's own
    (Evicted, DeadlineExceeded). Times are UTC.
    """

    name: str
    uid: str
    owner_uid: str
    type: str
    """Replica type, spelled as in `names.REPLICA_TYPES`."""
    index: int
    attempt: int = 0
    phase: Phase = "Pending"
    deleting: bool = False
    delete_by: datetime | None = None
    """deletionTimestamp of a terminating pod, which includes the grace period: when it should be gone."""
    forced: bool = False
    """Whether it was deleted with a grace period of zero, and still exists."""
    is_watched: bool = True
    """Whether it has the label by which pods are watched; a pod of kubeflow/mxnet-operator has not."""
    finalizers: tuple[str, ...] = ()
    removal_requested_at: datetime | None = None
    """Time at which it was deleted or disrupted, whichever came first."""
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
    """Reason of the pod's condition DisruptionTarget, while that is True."""
    unschedulable: str = ""
    """Scheduler's message while it finds no node for the pod, or may not schedule it yet (a scheduling gate)."""
    scheduler_name: str = ""
    gang_member: str = ""
    """Annotation about its gang, `names.GANG_MEMBER_ANNOTATION`, while it has no node."""
    created_at: datetime | None = None
    reported: bool = False
    """Whether its kubelet has reported on it: a start time, or the state of a container."""
    waiting_reason: str = ""
    """Kubelet's reason why `waiting_container` does not start: the first that can't, else the `mxnet` one."""
    waiting_message: str = ""
    waiting_container: str = ""
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def is_placed(self) -> bool:
        """Whether it has a node; not one that its template names and that doesn't exist, as its scheduler says.

        Where its containers have run it does exist: what a scheduler says of it then was late.
        """
        return bool(self.node_name) and not (self.unschedulable and self.phase == "Pending")

    @property
    def placed_at(self) -> datetime | None:
        """Time at which it got its node; of a node that its template names its creation, until the kubelet reports."""
        return self.scheduled_at or (self.created_at if self.is_placed else None)

    @property
    def stopped_by_node(self) -> bool:
        """Whether its kubelet ended it for a node shutdown or a critical pod, or rejected it while the node shut down.

        The pod's reason says so. Kubelets before 1.26 don't set the condition DisruptionTarget, nor does any with a pod
        that it rejects; those before 1.21 say Shutdown.
        """
        return self.phase == "Failed" and self.pod_reason in ("Terminated", "Preempting", "Shutdown", "NodeShutdown")

    @property
    def end_is_unknown(self) -> bool:
        """Whether its end was not observed, since its node went down: the exit code (255, 137) is made up."""
        return bool(self.exit_code) and self.reason in ("Unknown", "ContainerStatusUnknown")

    @property
    def ended_at(self) -> datetime | None:
        """Time at which it ended or was deleted or disrupted, whichever came first."""
        return min((time for time in (self.finished_at, self.removal_requested_at) if time is not None), default=None)

    @property
    def was_removed(self) -> bool:
        """Whether it was deleted or disrupted, so that its exit code says nothing.

        Whether it had ended before is no question of times: the API server's clock dates the one, the node's the other.
        """
        return self.deleting or bool(self.disruption) or self.stopped_by_node


class ChildView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Observed child of a job other than a pod; each kind has a subclass, with what else its policy reads."""

    name: str
    uid: str
    owner_uid: str
    deleting: bool = False
    fingerprint: str = ""
    """Digest of what it was built from, where the kind has one: `CreateChild.fingerprint`."""
    finalizers: tuple[str, ...] = ()


class NodeView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Node of a pod that doesn't terminate.

    OutOfService is one that is not ready and that an administrator has given the taint of this name, as Kubernetes' own
    pod garbage collector has it (KEP-2268); Forbidden one that the controller has no right to read.
    """

    OUT_OF_SERVICE: ClassVar[str] = "node.kubernetes.io/out-of-service"

    name: str
    state: Literal["Present", "Gone", "OutOfService", "Forbidden"]


class Observed(msgspec.Struct, frozen=True):
    """Observed children of one job, as cached; those of other owners may be among them."""

    pods: tuple[PodView, ...] = ()
    children: tuple[ChildView, ...] = ()
    """Children other than pods."""
    nodes: tuple[NodeView, ...] = ()
    """Nodes that a plan asked for, read from the server for this reconciliation."""
    pods_lag: bool = False
    """Whether the cache of pods is older than the job."""
    pods_listed: Literal["", "labelled", "owned"] = ""
    """How `pods` were listed for this reconciliation, past the cache: `Reads.pods`."""
    job_is_newest: bool | None = None
    """Whether the server has no newer version of the job; None where it was not asked."""
    lease_left: timedelta | None = None
    """Time left of the lease of a job that `has_lease`, on the controller's own clock; None without one."""
    facts: tuple[object, ...] = ()
    """Observations of integrations, one struct each."""

    def owned_by(self, uid: str) -> "Observed":
        """Return only what belongs to the job with this uid: a name alone proves nothing."""
        return msgspec.structs.replace(
            self,
            pods=tuple(pod for pod in self.pods if pod.owner_uid == uid),
            children=tuple(child for child in self.children if child.owner_uid == uid),
        )

    def fact(self, fact_type: type[F]) -> F | None:
        """Return the observation of this type; None where its integration observed nothing."""
        return next((each for each in self.facts if isinstance(each, fact_type)), None)

    def with_fact(self, fact: object) -> "Observed":
        """Return the observation with an integration's."""
        others = tuple(each for each in self.facts if type(each) is not type(fact))
        return msgspec.structs.replace(self, facts=(*others, fact))

    def without(self, pods: tuple[PodView, ...]) -> "Observed":
        """Return the observation without these pods."""
        uids = {pod.uid for pod in pods}
        return msgspec.structs.replace(self, pods=tuple(pod for pod in self.pods if pod.uid not in uids))
