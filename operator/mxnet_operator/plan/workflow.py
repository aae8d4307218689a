"""Jobs owned by an Argo Workflow: `argo terminate` runs no exit handler, so the controller deletes them with it.

Nothing watches workflows: Argo need not be there, nor the controller be allowed to read them.
"""

from datetime import timedelta
from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import DeleteJob, Effects, Event
from mxnet_operator.plan.lease import can_end

READ_INTERVAL: Final = timedelta(seconds=15)
"""Interval at which a Workflow is read."""


def goes_with_workflow(job: MXJob) -> bool:
    """Return whether the job's manifest asks for it, and it is unfinished."""
    return job.metadata.annotations.get(names.DELETE_WITH_WORKFLOW_ANNOTATION) == "true" and can_end(job)


def deleted(job: MXJob, why: str) -> Effects:
    """Return the effects that delete a job whose workflow is over, for this reason."""
    message = f"The workflow {why}: the job is deleted, as {names.DELETE_WITH_WORKFLOW_ANNOTATION} says."
    return Effects(
        actions=(DeleteJob(job.metadata.name, job.metadata.uid),),
        events=(Event("Normal", "WorkflowOver", message),),
    )
