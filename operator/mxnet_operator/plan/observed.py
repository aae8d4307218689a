"""What the controller sees of a job's children: small frozen structs, projected from the watch stream."""

from datetime import datetime
from typing import Literal

import msgspec

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]


class PodView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One pod of a job.

    `exit_code`, `reason` and `message` are those of the terminated `mxnet` container (the pod's phase says nothing
    while a sidecar runs on); `exit_code` is None until it has ended. `pod_reason` and `pod_message` are the pod's own
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
    stop_requested: bool = False
    """Whether spec.activeDeadlineSeconds is 1: the controller's way to stop a pod and keep its logs."""
    node_name: str = ""
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    pod_reason: str = ""
    pod_message: str = ""
    disruption: str = ""
    """The reason of the pod's condition DisruptionTarget, while that is true."""
    waiting_reason: str = ""
    waiting_message: str = ""
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ServiceView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One Service of a job."""

    name: str
    uid: str
    owner_uid: str
    deleting: bool = False


class Observed(msgspec.Struct, frozen=True):
    """The children of one job as the caches have them; those of other owners may be among them."""

    pods: tuple[PodView, ...] = ()
    services: tuple[ServiceView, ...] = ()

    def owned_by(self, uid: str) -> "Observed":
        """Only what belongs to the job with this uid: a name alone proves nothing."""
        return Observed(
            tuple(pod for pod in self.pods if pod.owner_uid == uid),
            tuple(service for service in self.services if service.owner_uid == uid),
        )

    def without(self, pods: tuple[PodView, ...]) -> "Observed":
        """All but these pods."""
        uids = {pod.uid for pod in pods}
        return Observed(tuple(pod for pod in self.pods if pod.uid not in uids), self.services) if uids else self
