"""Projection from the watch stream to the small structs that `plan` reads; all else in a pod's JSON is skipped."""

import sys
import zlib
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.conditions import RUNNING
from mxnet_operator.api.status_size import shortened
from mxnet_operator.api.types import TrainingStatus
from mxnet_operator.integrations.child_kinds import Child, project_metadata
from mxnet_operator.plan import PodView, ServiceView
from mxnet_operator.readers.durations import after
from mxnet_operator.readers.metadata import Meta, has_watched_label, job_of
from mxnet_operator.readers.pods import (
    STOP,
    Condition,
    PodStatus,
    Wire,
    end_of,
    ended_without_container,
    main_state,
    waiting_of,
)

LARGEST_BODY: Final = 16 * 1024
"""Maximum bytes of a cached job: a larger one is read when it is reconciled, so that none takes all the memory."""
_COMPRESSED: Final = 8 * 1024
"""Minimum bytes from which a job is compressed."""
_LARGEST_TEXT: Final = 4096
"""Maximum bytes of a text in a pod's status; a kubelet takes no longer termination message."""


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """Cached job: its JSON, decoded when it is reconciled (as dicts, 5,000 of them would take 150 MB)."""

    key: str
    """Key of the job: `namespace/name`."""
    body: bytes | None
    """JSON of the job, perhaps compressed, without unused fields; None for a job that is too large to be cached."""
    state: str = ""
    """Its `status.state`; empty before its first status."""
    training: TrainingStatus | None = None
    """Its `status.training`, while it runs."""

    @property
    def raw(self) -> bytes | None:
        """JSON of the job; None where that has to be read from the server."""
        return zlib.decompress(self.body) if self.body is not None and self.body[:1] != b"{" else self.body


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    replica: Annotated[str, msgspec.Meta()] = msgspec.field(default="", name=names.REPLICA_ANNOTATION)
    gang_member: Annotated[str, msgspec.Meta()] = msgspec.field(default="", name=names.GANG_MEMBER_ANNOTATION)


class _Meta(Meta, frozen=True):
    annotations: _Annotations | None = None


class _PodSpec(Wire, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    active_deadline_seconds: int | None = None


class _Pod(Wire, frozen=True):
    metadata: _Meta
    spec: _PodSpec = _PodSpec()
    status: PodStatus = PodStatus()


class _JobStatus(Wire, frozen=True):
    state: Any = ""
    """Text, but that jobs of earlier operators may have anything."""
    training: msgspec.Raw = msgspec.Raw()


class _Job(Wire, frozen=True):
    metadata: Meta
    status: _JobStatus | None = None


_pods: Final = msgspec.json.Decoder(_Pod)
_jobs: Final = msgspec.json.Decoder(_Job)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def project_job(raw: msgspec.Raw) -> JobRecord:
    job = _jobs.decode(raw)
    status = job.status or _JobStatus()
    state = sys.intern(status.state) if isinstance(status.state, str) else ""
    training = _training(status.training) if state == RUNNING and status.training else None
    return JobRecord(f"{job.metadata.namespace}/{job.metadata.name}", _kept(raw), state, training)


def _training(raw: msgspec.Raw) -> TrainingStatus | None:
    """Return what metrics show of a training; None for what another operator left there."""
    try:
        return msgspec.json.decode(raw, type=TrainingStatus | None)
    except msgspec.ValidationError:
        return None


def _kept(raw: msgspec.Raw) -> bytes | None:
    """Return the cached part of a job: without managedFields and kubectl's annotation, often the larger part."""
    job = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(job["metadata"], type=dict[str, msgspec.Raw])
    metadata.pop("managedFields", None)
    if _LAST_APPLIED.encode() in bytes(metadata.get("annotations", b"")):
        annotations = msgspec.json.decode(metadata["annotations"], type=dict[str, msgspec.Raw])
        annotations.pop(_LAST_APPLIED, None)
        metadata["annotations"] = msgspec.Raw(msgspec.json.encode(annotations))
    body = msgspec.json.encode({**job, "metadata": metadata})
    if len(body) > _COMPRESSED:
        body = zlib.compress(body, 1)
    return body if len(body) <= LARGEST_BODY else None


def project_service(raw: msgspec.Raw) -> Child[ServiceView] | None:
    """Return a Service for the cache; None if no job controls it."""
    return project_metadata(raw, ServiceView)


def project_pod(raw: msgspec.Raw) -> Child[PodView] | None:
    """Return a pod for the cache; None if no job controls it, or nothing says which replica it is."""
    pod = _pods.decode(raw)
    meta, status = pod.metadata, pod.status
    job = job_of(meta)
    replica = _replica_of(meta, job[0]) if job is not None else None
    if job is None or replica is None:
        return None
    replica_type, index, attempt = replica
    running, end = main_state(status).running, end_of(status)
    ended, init_container = (end.how, end.init_container) if end is not None else (None, "")
    waiter, waiting = waiting_of(status)
    true = {condition.type: condition for condition in status.conditions or () if condition.status == "True"}
    scheduled, disrupted = true.get("PodScheduled"), true.get("DisruptionTarget")
    waits = (c.message or c.reason for c in status.conditions or () if (c.type, c.status) == ("PodScheduled", "False"))
    view = PodView(
        name=meta.name,
        uid=meta.uid,
        owner_uid=job[1],
        type=replica_type,
        index=index,
        attempt=attempt,
        phase=status.phase,
        deleting=meta.deletion_timestamp is not None,
        delete_by=meta.deletion_timestamp,
        forced=meta.deletion_grace_period_seconds == 0,
        is_watched=has_watched_label(meta.labels),
        finalizers=tuple(map(sys.intern, meta.finalizers or ())),
        removal_requested_at=_removal_requested_at(meta, disrupted),
        stop_requested=pod.spec.active_deadline_seconds == STOP,
        node_name=sys.intern(pod.spec.node_name),
        exit_code=ended.exit_code if ended else None,
        reason=ended.reason if ended else "",
        message=shortened(ended.message, _LARGEST_TEXT) if ended else "",
        init_container=init_container,
        pod_reason=status.reason,
        pod_message=shortened(status.message, _LARGEST_TEXT),
        disruption=disrupted.reason if disrupted else "",
        unschedulable=shortened(next(waits, ""), _LARGEST_TEXT),
        scheduler_name=sys.intern(pod.spec.scheduler_name),
        gang_member=sys.intern(meta.annotations.gang_member) if meta.annotations and not pod.spec.node_name else "",
        created_at=meta.creation_timestamp,
        reported=bool(status.start_time or status.container_statuses or status.init_container_statuses),
        waiting_reason=waiting.reason,
        waiting_message=shortened(waiting.message, _LARGEST_TEXT),
        waiting_container=waiter,
        scheduled_at=scheduled.last_transition_time if scheduled else None,
        started_at=ended.started_at if ended else running.started_at if running else None,
        finished_at=ended.finished_at if ended else ended_without_container(status),
    )
    return Child(job[0], view)


def _replica_of(meta: _Meta, job: str) -> tuple[str, int, int] | None:
    """Return the replica type, index and attempt of a pod of the job with this key.

    Its annotation says them. Only a pod that another operator created has none: 1.8.1's labels say them, which users
    edit, else the pod's name.
    """
    labels = meta.labels or {}
    labelled = (
        labels.get(names.LABEL_REPLICA_TYPE, ""),
        labels.get(names.LABEL_REPLICA_INDEX, ""),
        labels.get(names.LABEL_ATTEMPT, "0"),
    )
    annotated = meta.annotations.replica.split("/") if meta.annotations is not None else []
    written_type, index, attempt = annotated if len(annotated) == 3 else labelled
    replica_type = names.canonical_type(written_type)
    if replica_type is not None and index.isdecimal() and attempt.isdecimal():
        return replica_type, int(index), int(attempt)
    named = names.replica_of(job.rpartition("/")[2], meta.name)
    return None if named is None else (*named, 0)


def owner_uid(child: Child[Any]) -> str:
    """Return the owner's uid, by which children are indexed."""
    uid: str = child.view.owner_uid
    return uid


def _removal_requested_at(meta: _Meta, disrupted: Condition | None) -> datetime | None:
    """Return when the pod was deleted or disrupted, whichever came first."""
    asked = [disrupted.last_transition_time] if disrupted is not None else []
    if meta.deletion_timestamp is not None:  # The grace period later than the request.
        asked.append(after(meta.deletion_timestamp, -(meta.deletion_grace_period_seconds or 0)))
    return min((time for time in asked if time is not None), default=None)
