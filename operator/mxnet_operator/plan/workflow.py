"""A job that goes with its Argo Workflow: `argo terminate` runs no exit handler, so nobody else would end it.

Nothing watches workflows: Argo need not be there, nor the controller be allowed to read them.
"""

from datetime import timedelta
from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import DeleteJob, Event, Plan
from mxnet_operator.plan.deletion import can_end

ASK_AGAIN: Final = timedelta(seconds=15)
"""How often a workflow is asked after."""


def goes_with_workflow(job: MXJob) -> bool:
    """Whether the job's manifest asks for it, and there is something left to end."""
    return job.metadata.annotations.get(names.DELETE_WITH_WORKFLOW_ANNOTATION) == "true" and can_end(job)


def deleted(job: MXJob, why: str) -> Plan:
    """The end of a job whose workflow is at its end, for this reason."""
    message = f"The workflow {why}: the job is deleted, as {names.DELETE_WITH_WORKFLOW_ANNOTATION} says."
    return Plan(
        actions=(DeleteJob(job.metadata.name, job.metadata.uid),),
        events=(Event("Normal", "WorkflowOver", message),),
    )
