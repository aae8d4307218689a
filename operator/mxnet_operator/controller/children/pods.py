"""Row of pods in the table of child kinds."""

from typing import Any, Final

from mxnet_operator.api.types import MXJob
from mxnet_operator.builders import build_pod
from mxnet_operator.builders.metadata import pod_labels
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.integrations.child_kinds import ChildKind, Patch
from mxnet_operator.kube import resources
from mxnet_operator.plan.actions import AnnotatePod, CreatePod, DeletePod, RestoreLabels, StopPod
from mxnet_operator.readers.pods import STOP


def _manifest(job: MXJob, action: CreatePod, has_hook: bool) -> dict[str, Any]:
    return build_pod(job, action.type, action.index, action.attempt, has_hook=has_hook, additions=action.additions)


def _patch(job: MXJob, action: StopPod | RestoreLabels | AnnotatePod) -> Patch:
    if isinstance(action, StopPod):
        return Patch({"spec": {"activeDeadlineSeconds": STOP}})
    if isinstance(action, AnnotatePod):
        return Patch({"metadata": {"annotations": {action.annotation: action.value}}})
    return Patch({"metadata": {"labels": pod_labels(job, action.type, action.index, action.attempt)}})


PODS: Final = ChildKind(
    resource=resources.PODS,
    project=project_pod,
    create=CreatePod,
    build=_manifest,
    end=(DeletePod, StopPod, RestoreLabels, AnnotatePod),
    patch=_patch,
    needed=True,
)
