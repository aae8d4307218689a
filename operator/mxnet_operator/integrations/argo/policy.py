"""Jobs owned by an Argo Workflow: `argo terminate` runs no exit handler, so the controller deletes them with it.

Nothing watches workflows: Argo need not be there, nor the controller be allowed to read them.
"""

from datetime import timedelta
from typing import Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import DeleteJob, Effects, Event
from mxnet_operator.plan.integration import IntegrationPolicy
from mxnet_operator.plan.lease import can_end
from mxnet_operator.plan.state import JobState

READ_INTERVAL: Final = timedelta(seconds=15)
"""Interval at which a Workflow is read."""


class WorkflowOver(msgspec.Struct, frozen=True):
    """Observation that the Argo Workflow of a job that `goes_with_workflow` is over."""

    why: str


class ArgoPolicy(IntegrationPolicy):
    """Decisions about a job that is deleted with its workflow."""

    def follow_parent(self, state: JobState) -> Effects:
        """Return the job's deletion once its workflow is over; before, when to check on that again."""
        found, job = state.observed.fact(WorkflowOver), state.asked
        if found is None:
            return Effects(requeue_after=READ_INTERVAL if goes_with_workflow(job) else None)
        message = f"The workflow {found.why}: the job is deleted, as {names.DELETE_WITH_WORKFLOW_ANNOTATION} says."
        return Effects(
            actions=(DeleteJob(job.metadata.name, job.metadata.uid),),
            events=(Event("Normal", "WorkflowOver", message),),
            is_final=True,
        )


def goes_with_workflow(job: MXJob) -> bool:
    """Return whether the job's manifest asks for it, and it is unfinished."""
    return job.metadata.annotations.get(names.DELETE_WITH_WORKFLOW_ANNOTATION) == "true" and can_end(job)
