"""Back end of a gang scheduler: its objects before the pods, its marks on these, and its rows of child kinds.

Each back end is one file beside this one, and a row in `SCHEDULERS`.
"""

import contextlib
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.metadata import job_labels, owner_reference
from mxnet_operator.integrations.child_kinds import Child, ChildKind, Patch, StoredChild, project_metadata
from mxnet_operator.integrations.gangs.gang import (
    PODGROUPS,
    WORKLOADS,
    CreateGangWorkload,
    CreatePodGroup,
    DeleteGangWorkload,
    DeletePodGroup,
    DeletePodGroupInForeground,
    Gang,
    GangWorkloadView,
    PodGroupView,
    ReleasePodGroup,
    TouchPodGroup,
    fingerprint,
    gang_of,
)
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import ChildRule
from mxnet_operator.plan.actions import CreateChild, ReleaseChild, TouchChild

_MESSAGE: Final = 1024
"""Characters of a scheduler's words that are kept."""


class GangBackend(msgspec.Struct, frozen=True, kw_only=True):
    """Gang scheduler by which the pods of a job are placed at once or not at all."""

    resources: tuple[Resource, ...]
    """The kinds of its objects in the order of their creation, the pod group last; served where all of them are."""
    objects: Callable[[MXJob, Gang], tuple[dict[str, Any], ...]]
    """Function that builds the manifests of its objects, one of each kind."""
    decorate: Callable[[MXJob, Gang, dict[str, Any]], dict[str, Any]]
    """Function that adds what the gang scheduler needs to a pod's manifest."""
    ready_for_pods: Callable[[dict[str, Any]], bool] = lambda _: True
    """Whether pods may be created, by the status of their group."""
    describe: Callable[[dict[str, Any]], str] = lambda _: ""
    """The scheduler's words for why the group waits, by its status; empty where it says nothing."""
    dropped: Callable[[MXJob, Gang, StoredChild], str] = lambda *_: ""
    """Function that describes in a sentence what the server dropped in silence from an object as it was stored."""
    dropped_of_pod: Callable[[StoredChild], str] = lambda _: ""
    """Function that describes in a sentence what the server dropped in silence from a decorated pod; empty where it is
    whole.
    """
    rule: ChildRule = PODGROUPS


def group_metadata(job: MXJob, gang: Gang, name: str = "") -> dict[str, Any]:
    """Build the metadata of every object of a gang: it is named as its job where it has no `name`, and goes with it."""
    return {
        "name": name or job.metadata.name,
        "namespace": job.metadata.namespace,
        "labels": job_labels(job),
        "annotations": {names.GANG_ANNOTATION: fingerprint(gang)},
        "ownerReferences": [owner_reference(job)],
    }


def pod_group(
    resource: Resource,
    job: MXJob,
    gang: Gang,
    spec: dict[str, Any],
    min_resources: Mapping[str, str],
    *,
    name: str = "",
) -> dict[str, Any]:
    """Build the manifest of a PodGroup, with these minResources if there are any; named as its job without a `name`."""
    return {
        "apiVersion": f"{resource.group}/{resource.version}",
        "kind": "PodGroup",
        "metadata": group_metadata(job, gang, name),
        "spec": {**spec, **({"minResources": dict(min_resources)} if min_resources else {})},
    }


def condition_message(group: dict[str, Any], types: Collection[str], status: str) -> str:
    """Return the message of the first condition of these types that has this status; empty where there is none."""
    conditions = (group.get("status") or {}).get("conditions") or ()
    found = (c for c in conditions if c.get("type") in types and c.get("status") == status)
    return next((str(c.get("message") or "") for c in found), "")


def with_scheduling(spec: dict[str, Any], gang: Gang, scheduler: str = "") -> dict[str, Any]:
    """Return a pod's spec with the gang's priority class and this scheduler's name, where it has none of its own."""
    given = {"priorityClassName": gang.priority_class, "schedulerName": scheduler}
    return {**spec, **{field: name for field, name in given.items() if name and not spec.get(field)}}


def child_kinds(backend: GangBackend) -> tuple[ChildKind, ...]:
    """Return the rows of a gang's objects, in order of creation; only the group's row reports on pods."""
    *workloads, _ = range(len(backend.resources))
    return (*(_workload_kind(backend, index) for index in workloads), _group_kind(backend))


def _workload_kind(backend: GangBackend, index: int) -> ChildKind:
    return ChildKind(
        resource=backend.resources[index],
        project=lambda raw: project_metadata(raw, GangWorkloadView),
        create=CreateGangWorkload,
        build=partial(_build, backend, index),
        end=(DeleteGangWorkload,),
        rule=WORKLOADS,
    )


def _group_kind(backend: GangBackend) -> ChildKind:
    def project(raw: msgspec.Raw) -> Child[PodGroupView] | None:
        child = project_metadata(raw, PodGroupView)
        if child is None:
            return None
        group = msgspec.json.decode(raw)
        ready, says = backend.ready_for_pods(group), backend.describe(group)[:_MESSAGE]
        view = msgspec.structs.replace(child.view, ready=ready, says=says, touched_at=_touched_at(group))
        return Child(child.job, view)

    def decorate(job: MXJob, pod: dict[str, Any]) -> dict[str, Any]:
        gang = gang_of(job)
        return pod if gang is None else backend.decorate(job, gang, pod)

    def dropped(job: MXJob, stored: StoredChild) -> str:
        gang = gang_of(job)
        return "" if gang is None else backend.dropped(job, gang, stored)

    def dropped_of_pod(job: MXJob, stored: StoredChild) -> str:
        return "" if gang_of(job) is None else backend.dropped_of_pod(stored)

    return ChildKind(
        resource=backend.resources[-1],
        project=project,
        create=CreatePodGroup,
        build=partial(_build, backend, -1),
        end=(DeletePodGroup, DeletePodGroupInForeground, ReleasePodGroup, TouchPodGroup),
        patch=_patch,
        rule=backend.rule,
        decorate=decorate,
        dropped=dropped,
        dropped_of_pod=dropped_of_pod,
    )


def _patch(_: MXJob, action: ReleaseChild | TouchChild) -> Patch:
    if isinstance(action, TouchChild):
        return Patch({"metadata": {"annotations": {names.TOUCHED_ANNOTATION: action.at.isoformat()}}})
    return Patch({"metadata": {"finalizers": None}})


def _touched_at(group: dict[str, Any]) -> datetime | None:
    """Return when a group was touched; None where it never was, or somebody has written something else there."""
    with contextlib.suppress(KeyError, ValueError):
        at = datetime.fromisoformat((group["metadata"].get("annotations") or {})[names.TOUCHED_ANNOTATION])
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return None


def _build(backend: GangBackend, index: int, job: MXJob, _: CreateChild, __: bool) -> dict[str, Any]:
    gang = gang_of(job)
    if gang is None:
        raise ValueError(f"job {job.metadata.name} has no gang")
    return backend.objects(job, gang)[index]
