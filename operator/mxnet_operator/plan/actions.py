"""Answers of policies: what to read first, effects (actions, one status, Events, requeue), or an attempt's end."""

from datetime import datetime, timedelta
from typing import ClassVar, Literal

import msgspec

from mxnet_operator.api.pod_additions import PodAdditions
from mxnet_operator.api.types import MXJob, MXJobStatus, TrainingStatus
from mxnet_operator.plan.observed import PodView


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


class ChangeChild(msgspec.Struct, frozen=True, gc=False):
    """Change a child other than a pod as its kind says, if it still has this uid; each change has a subclass."""

    needs_newest_job: ClassVar[bool] = False
    """As that of DeleteChild."""
    name: str
    uid: str

    @property
    def needs_fresh_pods(self) -> bool:
        """As that of DeleteChild."""
        return False


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
    additions: tuple[PodAdditions, ...] = ()
    """What integrations add to the pod, such as the node labels of a queue's quota."""


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


class AnnotatePod(msgspec.Struct, frozen=True, gc=False):
    """Set an annotation of a pod, if it still has this uid."""

    name: str
    uid: str
    annotation: str
    value: str


class DeletePod(msgspec.Struct, frozen=True, gc=False):
    """Delete a pod, if it still has this uid, with a grace period in seconds (None: the pod's own)."""

    name: str
    uid: str
    grace: int | None = None


class DeleteService(DeleteChild, frozen=True, gc=False):
    """Delete a Service, if it still has this uid."""


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


Action = (
    CreateChild
    | CreatePod
    | StopPod
    | RestoreLabels
    | AnnotatePod
    | ChangeChild
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
    training: TrainingStatus | None = None
    """What the logs say of the training by now, for the status; None where nothing is new."""
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
        is_empty = not (other.actions or other.reports or other.events) and other.training is None
        if is_empty and other.requeue_after is None:
            return self
        waits = [wait for wait in (self.requeue_after, other.requeue_after) if wait is not None]
        return Effects(
            actions=self.actions + other.actions,
            reports=self.reports + other.reports,
            events=self.events + other.events,
            training=self.training if other.training is None else other.training,
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


class Success(msgspec.Struct, frozen=True):
    """End of a job whose deciding replicas are done, or that an integration ends: then it says why."""

    reason: str = ""
    message: str = ""
    training: TrainingStatus | None = None
    """What the logs say of the training, where the job ends because of it."""


class Failure(msgspec.Struct, frozen=True):
    """Failure of a job."""

    message: str
    """Message: 1.8.1's sentence, then the replica, how it ended, and its last lines."""


class Teardown(msgspec.Struct, frozen=True):
    """End of the present attempt, which another one follows."""

    pods: tuple[PodView, ...]
    """Pods that failed."""
    failures: int
    """Number of failures that count against backoffLimit; one at most where the whole gang restarts."""
    message: str
    fewer_replicas: dict[str, int] = {}
    """Number of replicas of the next attempt by type, where they are fewer than the job was started with."""
    of_all: bool = False
    """Whether all pods of the job are given up, however many, also where replicas restart one by one."""
