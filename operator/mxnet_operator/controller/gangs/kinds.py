"""The rows that a gang scheduler adds to the table of child kinds."""

import contextlib
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.controller.children.kind import ChildKind, Patch
from mxnet_operator.controller.gangs.backend import GangBackend
from mxnet_operator.controller.projection import Child, project_metadata
from mxnet_operator.plan.actions import CreateChild, ReleaseChild, TouchChild
from mxnet_operator.plan.gang import (
    WORKLOADS,
    CreateGangWorkload,
    CreatePodGroup,
    DeleteGangWorkload,
    DeletePodGroup,
    DeletePodGroupInForeground,
    GangWorkloadView,
    PodGroupView,
    ReleasePodGroup,
    TouchPodGroup,
    gang_of,
)

_MESSAGE: Final = 1024
"""Characters of a scheduler's words that are kept."""


def child_kinds(backend: GangBackend) -> tuple[ChildKind, ...]:
    """Return the rows of a gang's objects, in order of creation; only the group's row reports on pods."""
    *workloads, _ = range(len(backend.resources))
    return (*(_workload_kind(backend, index) for index in workloads), _group_kind(backend))


def _workload_kind(backend: GangBackend, index: int) -> ChildKind:
    def build(job: MXJob, _: CreateChild, __: bool) -> dict[str, Any]:
        return _objects(backend, job)[index]

    return ChildKind(
        resource=backend.resources[index],
        project=lambda raw: project_metadata(raw, GangWorkloadView),
        create=CreateGangWorkload,
        build=build,
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

    def build(job: MXJob, _: CreateChild, __: bool) -> dict[str, Any]:
        return _objects(backend, job)[-1]

    def decorate(job: MXJob, pod: dict[str, Any]) -> dict[str, Any]:
        gang = gang_of(job)
        return pod if gang is None else backend.decorate(job, gang, pod)

    def dropped(job: MXJob, stored: dict[str, Any]) -> str:
        gang = gang_of(job)
        return "" if gang is None else backend.dropped(job, gang, stored)

    def dropped_of_pod(job: MXJob, stored: dict[str, Any]) -> str:
        return "" if gang_of(job) is None else backend.dropped_of_pod(stored)

    return ChildKind(
        resource=backend.resources[-1],
        project=project,
        create=CreatePodGroup,
        build=build,
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


def _objects(backend: GangBackend, job: MXJob) -> tuple[dict[str, Any], ...]:
    gang = gang_of(job)
    if gang is None:
        raise ValueError(f"job {job.metadata.name} has no gang")
    return backend.objects(job, gang)
