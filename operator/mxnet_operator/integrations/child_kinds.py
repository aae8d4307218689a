"""Kind of child of a job: its resource, projection, and create, change and delete actions."""

import sys
from collections.abc import Callable
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.kube.answers import Stored
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import ChildRule, ChildView
from mxnet_operator.readers.metadata import Meta, job_of
from mxnet_operator.readers.pods import Wire

V = TypeVar("V")
C = TypeVar("C", bound=ChildView)


class Child(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """Cached child, with the key of the job that it belongs to."""

    job: str
    """Key of the job, as `Kind.job_key` makes it."""
    view: V


class KindsState(msgspec.Struct, frozen=True, gc=False):
    """Whether the API server serves the kinds of an integration, in a version that this controller knows.

    Unknown before the server has said so, and while the objects can't be listed: `trouble` says why, empty in the first
    moments.
    """

    state: Literal["Unknown", "Absent", "Served"]
    trouble: str = ""


class StoredChild(Stored, frozen=True):
    """Child as the server has stored it, in its reply to the creation."""

    kind: str = ""
    raw_spec: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="spec")

    @property
    def spec(self) -> dict[str, Any]:
        """Its spec, decoded when it is read, as few kinds need."""
        return msgspec.json.decode(self.raw_spec, type=dict[str, Any] | None) or {}


class Patch(msgspec.Struct, frozen=True):
    """Change of an object, as a JSON merge patch."""

    body: dict[str, Any]
    subresource: str = ""


class ChildKind(msgspec.Struct, frozen=True, kw_only=True):
    """Kind of child of a job.

    Kinds that `plan` treats alike have a `rule`, which names the action that deletes; pods have policies of their own.
    """

    resource: Resource
    project: Callable[[msgspec.Raw], Child[Any] | None]
    """Function that projects an object for the cache; None for one that no job controls."""
    create: type
    """Action that creates one."""
    build: Callable[[MXJob, Any, bool], dict[str, Any]]
    """Function that builds the manifest for such an action, given a job with defaults, and whether the fail-fast hook's
    ConfigMap exists.
    """
    end: tuple[type, ...]
    """Actions that stop, change or delete one."""
    patch: Callable[[MXJob, Any], Patch] | None = None
    """Patches of the actions that change one; the uid that they name is required besides."""
    rule: ChildRule | None = None
    needed: bool = False
    """Whether no job runs without it: the controller isn't ready before it is listed. Any other kind is watched, and
    its objects are created, only while the server serves it.
    """
    decorate: Callable[[MXJob, dict[str, Any]], dict[str, Any]] | None = None
    """Function that adds to a pod's manifest where such objects exist: the name of the pod's group."""
    dropped: Callable[[MXJob, StoredChild], str] | None = None
    """Function that describes what the server dropped from an object as it was stored; empty where it is whole."""
    dropped_of_pod: Callable[[MXJob, StoredChild], str] | None = None
    """Function that describes what the server dropped from a decorated pod; empty where it is whole."""


class _Annotations(msgspec.Struct, frozen=True, gc=False):
    fingerprint: Annotated[str, msgspec.Meta()] = msgspec.field(default="", name=names.GANG_ANNOTATION)


class _Meta(Meta, frozen=True):
    annotations: _Annotations | None = None


class _Object(Wire, frozen=True):
    metadata: _Meta


_objects: Final = msgspec.json.Decoder(_Object)


def project_metadata(raw: msgspec.Raw, view: type[C]) -> Child[C] | None:
    """Return a child of which only the metadata matter, for the cache; None if no job controls it."""
    meta = _objects.decode(raw).metadata
    job = job_of(meta)
    if job is None:
        return None
    key, uid = job
    child = view(
        name=meta.name,
        uid=meta.uid,
        owner_uid=uid,
        deleting=meta.deletion_timestamp is not None,
        fingerprint=meta.annotations.fingerprint if meta.annotations is not None else "",
        finalizers=tuple(map(sys.intern, meta.finalizers or ())),
    )
    return Child(key, child)
