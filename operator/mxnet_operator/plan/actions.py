"""Answers of a plan: what it must read first, or its effects: actions, one status, Events, and when to requeue."""

from datetime import datetime, timedelta
from typing import ClassVar, Literal

import msgspec

from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.readers.kueue import FINISHED, Placement, QueuePriority, WorkloadCondition


class _Named(msgspec.Struct, frozen=True, gc=False):
    name: str


class CreateChild(_Named, frozen=True, kw_only=True, gc=False):
    """Create a child other than a pod; each kind has a subclass, with what else its manifest depends on."""

    fingerprint: str = ""
    """Digest of the manifest's sources; a child with another is outdated. Empty for a kind that never changes."""
    beside_pods: bool = False
    """Whether pods of the job have nodes: a child of its name that an older operator made is then left as it is."""


class DeleteChild(msgspec.Struct, frozen=True, gc=False):
    """Delete a child other than a pod, if it still has this uid."""

    needs_fresh_pods: ClassVar[bool] = False
    """Whether it would be wrong if the job had pods that weren't observed."""
    needs_newest_job: ClassVar[bool] = False
    """Whether it would be wrong if the observed job were out of date."""
    propagation: ClassVar[Literal["Background", "Foreground"]] = "Background"
    """Foreground has the server store the object once more before it goes: who watches it sees a change."""
    name: str
    uid: str


class ReleaseChild(msgspec.Struct, frozen=True, gc=False):
    """Remove the finalizers from a terminating child other than a pod, if it still has this uid."""

    name: str
    uid: str


class TouchChild(msgspec.Struct, frozen=True, gc=False):
    """Write the time into an annotation of a child other than a pod, if it still has this uid, for who watches it."""

    name: str
    uid: str
    at: datetime


class CreateService(CreateChild, frozen=True, gc=False):
    """Create a headless Service: of the root replica, or of all pods (their subdomain)."""

    role: Literal["root", "replicas"]


class CreatePod(msgspec.Struct, frozen=True, gc=False):
    """Create the pod of one replica."""

    type: str
    index: int
    attempt: int
    is_last: bool = False
    """Whether it is created only once the creation of every other pod in the plan is confirmed."""
    placement: Placement | None = None
    """Node labels, tolerations and annotations that the job's queue adds to the pod."""
    priority_class: str = ""
    """PriorityClass of the pod where its template names none."""


class StopPod(msgspec.Struct, frozen=True, gc=False):
    """Stop a running pod and keep it with its logs, by `spec.activeDeadlineSeconds: 1`."""

    name: str
    uid: str


class RestoreLabels(msgspec.Struct, frozen=True, gc=False):
    """Give a pod the labels by which pods are watched, and by which its Services select it."""

    name: str
    uid: str
    type: str
    index: int
    attempt: int = 0


class SetGangMember(msgspec.Struct, frozen=True, gc=False):
    """Set a pod's annotation about its gang to `gang_member`, by which the local cluster's scheduler goes."""

    name: str
    uid: str
    gang_member: str


class DeletePod(msgspec.Struct, frozen=True, gc=False):
    """Delete a pod, if it still has this uid, with a grace period in seconds (None: the pod's own)."""

    name: str
    uid: str
    grace: int | None = None


class DeleteService(DeleteChild, frozen=True, gc=False):
    """Delete a Service, if it still has this uid."""


class CreateQueueWorkload(CreateChild, frozen=True, gc=False):
    """Create the Kueue Workload by which a job waits in its queue; `asks_for` is a digest of its requests."""

    asks_for: str
    priority: QueuePriority


class ChangeQueueWorkload(msgspec.Struct, frozen=True, gc=False):
    """Update the requests of a Workload without quota to those of the job as it is now."""

    needs_fresh_pods: ClassVar[bool] = False
    needs_newest_job: ClassVar[bool] = True
    name: str
    uid: str
    resource_version: str
    asks_for: str
    priority: QueuePriority


class SetQueueConditions(msgspec.Struct, frozen=True, gc=False):
    """Replace all conditions of a Workload; with `gives_quota_back`, end its admission."""

    needs_newest_job: ClassVar[bool] = False
    name: str
    uid: str
    resource_version: str
    conditions: tuple[WorkloadCondition, ...]
    gives_quota_back: bool = False

    @property
    def needs_fresh_pods(self) -> bool:
        """Whether it gives quota back, which pods that weren't observed may still use."""
        return self.gives_quota_back or any((each.type, each.status) == (FINISHED, "True") for each in self.conditions)


class DeleteQueueWorkload(DeleteChild, frozen=True, gc=False):
    """Delete a Workload, and with it its quota, if it still has this uid."""

    needs_fresh_pods = True
    needs_newest_job = True


class DeleteJob(msgspec.Struct, frozen=True, gc=False):
    """Delete the job itself, if it still has this uid; its children are garbage-collected.

    With a `resource_version`, delete it only if it has not changed since.
    """

    name: str
    uid: str
    resource_version: str = ""


class SuspendJob(msgspec.Struct, frozen=True, gc=False):
    """Set `suspend` of the job itself, if it has not changed since this resource version."""

    name: str
    uid: str
    resource_version: str


ChangeQueue = ChangeQueueWorkload | SetQueueConditions
Action = (
    CreateChild
    | CreatePod
    | StopPod
    | RestoreLabels
    | SetGangMember
    | ChangeQueue
    | DeletePod
    | DeleteChild
    | ReleaseChild
    | TouchChild
    | DeleteJob
    | SuspendJob
)


class Event(msgspec.Struct, frozen=True, gc=False):
    """Kubernetes Event about the job."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Report(msgspec.Struct, frozen=True, gc=False):
    """Change of a condition; one that the job reports already changes nothing."""

    type: str
    reason: str = ""
    message: str = ""
    status: Literal["True", "False", "Absent"] = "True"


class Reads(msgspec.Struct, frozen=True, kw_only=True):
    """What `plan` must know before it decides: caches may lag behind, and there is none of nodes."""

    pods: Literal["", "labelled", "owned"] = ""
    """List of the job's pods: those with our labels, or all that the job owns."""
    nodes: tuple[str, ...] = ()
    """Names of nodes."""
    newest_job: bool = False
    """Whether the server has no newer version of the job."""


class Effects(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a policy, or all of them, decides for a job.

    `status` is the whole new status, or None where nothing in it changes. The end of a job (Succeeded, Failed) and a
    teardown come with no action: stopping what is left waits until they are stored, so that a crash between the two
    loses nothing and counts nothing twice.
    """

    actions: tuple[Action, ...] = ()
    reports: tuple[Report, ...] = ()
    """Changes of conditions that a policy asks for; `plan` makes the status of them."""
    events: tuple[Event, ...] = ()
    requeue_after: timedelta | None = None
    status: MXJobStatus | None = None
    is_final: bool = False
    """Whether a policy decides alone: no further policy is asked, and what others have decided doesn't count."""
    job: MXJob | None = None
    """Job that the effects are for: with defaults, and as it was started. None for one that can't be run.

    This field and `pods_left` are not part of the request: effects that differ only in them are equal.
    """
    pods_left: bool = False
    """Whether pods that these effects, or the clean-up after their terminal condition, delete are still there."""

    def __add__(self, other: "Effects") -> "Effects":
        """Return the effects of two policies of which neither is final."""
        if not (other.actions or other.reports or other.events) and other.requeue_after is None:
            return self
        waits = [wait for wait in (self.requeue_after, other.requeue_after) if wait is not None]
        return Effects(
            actions=self.actions + other.actions,
            reports=self.reports + other.reports,
            events=self.events + other.events,
            requeue_after=min(waits, default=None),
        )

    def __eq__(self, other: object) -> bool:
        """Return whether other effects request the same."""
        return isinstance(other, Effects) and self._asked == other._asked

    def __hash__(self) -> int:
        """Return the hash of what the effects request."""
        return hash(self.actions)

    @property
    def _asked(self) -> tuple[object, ...]:
        return self.actions, self.status, self.events, self.requeue_after
