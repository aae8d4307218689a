"""What happens to a run's jobs when the run ends badly: an exit handler deletes them.

Owner references delete jobs with their Workflow object, which stays after a stop, a failure or a time-out. `terminate`
runs no exit handler at all: then a job runs until its own deadline, or until the workflow is deleted.
"""

from typing import Final

from hera.workflows import Parameter, Resource, Step, Steps, Workflow

from mxnet_argo.inputs import as_list
from mxnet_argo.job import WORKFLOW_UID_LABEL
from mxnet_operator.api import names

EXIT_HANDLER: Final = "mxjob-cleanup"
_DELETE: Final = "mxjob-delete"


def delete_jobs_on_exit(workflow: Workflow, *, choice: str | None = None) -> None:
    """Give a workflow (or WorkflowTemplate, or CronWorkflow) the exit handler.

    It deletes the MXJobs of this run unless the run succeeded; so `argo retry` of a failed step makes a new job.

    Args:
        workflow: with all its templates.
        choice: the name of an argument that the workflow gets, `delete` unless whoever submits it says `keep`.

    Raises:
        ValueError: the workflow has an exit handler already: call the template `mxjob-cleanup` from it. Or two of its
            templates have one name, of which Argo would run one for both.
    """
    if workflow.on_exit is not None:
        raise ValueError(f"the workflow has an exit handler already: add a step with the template {EXIT_HANDLER} to it")
    given = [str(getattr(each, "name", "")) for each in workflow.templates]
    if twice := sorted({name for name in given if given.count(name) > 1}):
        raise ValueError(f"two templates are named {twice[0]!r}: give each a name of its own")
    # Within `with workflow:` Hera has added them by itself.
    when = "{{workflow.status}} != Succeeded"
    if choice is not None:
        workflow.arguments = [
            *as_list(workflow.arguments),
            Parameter(
                name=choice,
                value="delete",
                enum=["delete", "keep"],
                description="what becomes of the jobs of a run that did not succeed",
            ),
        ]
        when += f" && {{{{workflow.parameters.{choice}}}}} != keep"
    workflow.templates.extend(
        each for each in exit_handler(when) if not any(each is known for known in workflow.templates)
    )
    workflow.on_exit = EXIT_HANDLER


def exit_handler(when: str) -> list[Steps | Resource]:
    """The templates of the exit handler, which does something when this condition of Argo's holds."""
    delete = Resource(
        name=_DELETE,
        action="delete",
        flags=[
            f"{names.PLURAL}.{names.GROUP}",
            "--selector",
            f"{WORKFLOW_UID_LABEL}={{{{workflow.uid}}}}",
            "--wait=false",
        ],
    )
    with Steps(name=EXIT_HANDLER) as steps:
        Step(name="delete", template=_DELETE, when=when)
    return [steps, delete]


__all__ = ["EXIT_HANDLER", "delete_jobs_on_exit", "exit_handler"]
