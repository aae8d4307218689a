"""Row of Services in the table of child kinds."""

from typing import Any, Final

from mxnet_operator.api.types import MXJob
from mxnet_operator.builders import build_service
from mxnet_operator.controller.projection import project_service
from mxnet_operator.integrations.child_kinds import ChildKind
from mxnet_operator.kube import resources
from mxnet_operator.plan.actions import CreateService, DeleteService
from mxnet_operator.plan.children import SERVICES as RULE


def _manifest(job: MXJob, action: CreateService, _: bool) -> dict[str, Any]:
    return build_service(job, action.name, action.role)


SERVICES: Final = ChildKind(
    resource=resources.SERVICES,
    project=project_service,
    create=CreateService,
    build=_manifest,
    end=(DeleteService,),
    rule=RULE,
    needed=True,
)
