"""Row of pods in the table of child kinds."""

from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders import build_pod
from mxnet_operator.builders.metadata import pod_labels
from mxnet_operator.controller.children.kind import ChildKind, Patch
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.kube import resources
from mxnet_operator.plan.actions import CreatePod, DeletePod, RestoreLabels, SetGangMember, StopPod
from mxnet_operator.plan.gang_member import gang_member
from mxnet_operator.readers.pods import STOP


def _manifest(job: MXJob, action: CreatePod, has_hook: bool) -> dict[str, Any]:
    gang = gang_member(job, action.attempt)
    return build_pod(
        job,
        action.type,
        action.index,
        action.attempt,
        gang=gang,
        has_hook=has_hook,
        placement=action.placement,
        priority_class=action.priority_class,
    )


def _patch(job: MXJob, action: StopPod | RestoreLabels | SetGangMember) -> Patch:
    if isinstance(action, StopPod):
        return Patch({"spec": {"activeDeadlineSeconds": STOP}})
    if isinstance(action, SetGangMember):
        return Patch({"metadata": {"annotations": {names.GANG_MEMBER_ANNOTATION: action.gang_member}}})
    return Patch({"metadata": {"labels": pod_labels(job, action.type, action.index, action.attempt)}})


PODS: Final = ChildKind(
    resource=resources.PODS,
    project=project_pod,
    create=CreatePod,
    build=_manifest,
    end=(DeletePod, StopPod, RestoreLabels, SetGangMember),
    patch=_patch,
    needed=True,
)
