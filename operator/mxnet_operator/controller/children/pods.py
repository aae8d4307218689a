"""Pods as a kind of child."""

from typing import Any, Final

from mxnet_operator.api.types import MXJob
from mxnet_operator.build import build_pod
from mxnet_operator.controller.children.kind import ChildKind
from mxnet_operator.controller.observe import project_pod
from mxnet_operator.kube import resources
from mxnet_operator.plan.actions import CreatePod, DeletePod, RestoreLabels, StopPod


def _manifest(job: MXJob, action: CreatePod, has_hook: bool) -> dict[str, Any]:
    return build_pod(job, action.type, action.index, action.attempt, has_hook=has_hook)


PODS: Final = ChildKind(
    resource=resources.PODS,
    project=project_pod,
    create=CreatePod,
    build=_manifest,
    end=(DeletePod, StopPod, RestoreLabels),
)
