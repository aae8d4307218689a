"""Rows of Kueue's Workloads in the table of child kinds, one for each version that Kueue serves; one is used."""

from functools import partial
from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders.queue_workload import (
    GROUP,
    V1BETA1,
    V1BETA2,
    build_queue_workload,
    queue_workload_spec,
)
from mxnet_operator.controller.children.kind import ChildKind, Patch
from mxnet_operator.controller.projection import project_queue_workload
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan.actions import (
    ChangeQueueWorkload,
    CreateQueueWorkload,
    DeleteQueueWorkload,
    SetQueueConditions,
)


def _manifest(version: str, job: MXJob, action: CreateQueueWorkload, _: bool) -> dict[str, Any]:
    return build_queue_workload(job, action.name, action.asks_for, action.priority, version)


def _patch(version: str, job: MXJob, action: ChangeQueueWorkload | SetQueueConditions) -> Patch:
    if isinstance(action, ChangeQueueWorkload):
        annotations = {names.ASKS_FOR_ANNOTATION: action.asks_for}
        spec = {**_UNSET, **queue_workload_spec(job, action.priority, version)}
        return Patch({"metadata": {"annotations": annotations}, "spec": spec})
    status: dict[str, Any] = {"conditions": msgspec.to_builtins(action.conditions)}
    return Patch({"status": {**status, **({"admission": None} if action.gives_quota_back else {})}}, "status")


_UNSET: Final = dict.fromkeys(
    ("maximumExecutionTimeSeconds", "priorityClassName", "priorityClassRef", "priorityClassSource")
)
"""Fields of a Workload's requests that a change removes where the job no longer has them."""


def _row(version: str) -> ChildKind:
    return ChildKind(
        resource=Resource(GROUP, version, "workloads"),
        project=project_queue_workload,
        create=CreateQueueWorkload,
        build=partial(_manifest, version),
        end=(ChangeQueueWorkload, SetQueueConditions, DeleteQueueWorkload),
        patch=partial(_patch, version),
    )


QUEUE_WORKLOADS: Final = tuple(_row(version) for version in (V1BETA2, V1BETA1))
"""Rows by version, the newest first."""
