"""What a plan can ask for: children to make, stop or delete, one status, events, and when to look again."""

from datetime import timedelta
from typing import Literal

import msgspec

from mxnet_operator.api.types import MXJob, MXJobStatus


class CreateChild(msgspec.Struct, frozen=True, gc=False):
    """Create a child that is no pod; each kind has a class of its own, with what its manifest depends on besides."""

    name: str


class DeleteChild(msgspec.Struct, frozen=True, gc=False):
    """Delete a child that is no pod, if it is still the one with this uid."""

    name: str
    uid: str


class CreateService(CreateChild, frozen=True, gc=False):
    """Make a headless Service: of the root replica, or of all pods (their subdomain)."""

    role: Literal["root", "replicas"]


class CreatePod(msgspec.Struct, frozen=True, gc=False):
    """Make the pod of one replica."""

    type: str
    index: int
    attempt: int
    is_last: bool = False
    """Whether it is created only once the creation of every other pod in the plan is confirmed."""


class StopPod(msgspec.Struct, frozen=True, gc=False):
    """End a running pod and keep it with its logs, by `spec.activeDeadlineSeconds: 1`."""

    name: str
    uid: str


class RestoreLabels(msgspec.Struct, frozen=True, gc=False):
    """Put a pod's labels back as they were when it was created."""

    name: str
    uid: str
    type: str
    index: int
    attempt: int


class DeletePod(msgspec.Struct, frozen=True, gc=False):
    """Delete a pod, if it is still the one with this uid, with so many seconds of grace (None: its own)."""

    name: str
    uid: str
    grace: int | None = None


class DeleteService(DeleteChild, frozen=True, gc=False):
    """Delete a Service, if it is still the one with this uid."""


class DeleteJob(msgspec.Struct, frozen=True, gc=False):
    """Delete the job itself, if it is still the one with this uid; its children go with it.

    With a `resource_version`, only if nothing of it has changed since.
    """

    name: str
    uid: str
    resource_version: str = ""


class SuspendJob(msgspec.Struct, frozen=True, gc=False):
    """Set `suspend` of the job itself, if nothing of it has changed since this version."""

    name: str
    uid: str
    resource_version: str


Action = CreateChild | CreatePod | StopPod | RestoreLabels | DeletePod | DeleteChild | DeleteJob | SuspendJob


class Event(msgspec.Struct, frozen=True, gc=False):
    """Something to tell the user, as a Kubernetes Event about the job."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Plan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The answer to one look at a job.

    `status` is the whole new status, or None where nothing in it changes. A verdict (Succeeded, Failed) and a teardown
    come with no action: stopping what is left waits until they are stored, so that a crash between the two loses
    nothing and counts nothing twice.
    """

    actions: tuple[Action, ...] = ()
    status: MXJobStatus | None = None
    events: tuple[Event, ...] = ()
    requeue_after: timedelta | None = None
    job: MXJob | None = None
    """The job that was decided about: with its defaults, and as it was started. None for one that can't be run.

    Neither this nor `pods_left` is part of what is asked for: two plans that differ in nothing else are equal.
    """
    pods_left: bool = False
    """Whether pods that are to go, by this plan or the clean-up after its verdict, are still there."""

    def __eq__(self, other: object) -> bool:
        """Whether another plan asks for the same."""
        return isinstance(other, Plan) and self._asked == other._asked

    def __hash__(self) -> int:
        """Of what it asks for."""
        return hash(self.actions)

    @property
    def _asked(self) -> tuple[object, ...]:
        return self.actions, self.status, self.events, self.requeue_after
