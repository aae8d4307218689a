"""Exit handler that deletes the jobs of a run that ended badly.

Owner references delete jobs with their Workflow object, which stays after a stop, a failure or a time-out. `terminate`
runs no exit handler at all: then the controller deletes the job, if it may read workflows (`delete_with_workflow`).
"""

from typing import Final

from hera.workflows import Parameter, Resource, Step, Steps, Suspend, Workflow
from hera.workflows._context import _context
from hera.workflows.models import ContinueOn

from mxnet_argo.inputs import as_list
from mxnet_argo.job import WORKFLOW_UID_LABEL
from mxnet_argo.retries import retry_unless
from mxnet_operator.api import names
from mxnet_operator.api.conditions import FAILED, SUCCEEDED

EXIT_HANDLER: Final = "mxjob-cleanup"
_DELETE: Final = "mxjob-delete"
_KEEP: Final = "mxjob-keep"
KEEP_FAILED: Final = "keep-failed-for"
"""The argument that says how long jobs are kept, where the submitter of a workflow may choose what happens to them."""


def delete_jobs_on_exit(workflow: Workflow, *, choice: str | None = None) -> None:
    """Add an exit handler that deletes the jobs of a run that didn't succeed.

    It deletes unfinished and failed MXJobs of the run, so that `argo retry` of a failed step creates a new job.

    Args:
        workflow: Workflow, WorkflowTemplate or CronWorkflow with all its templates.
        choice: Name of an argument to add, with which each run says `delete` (the default) or `keep`. It comes with
            `keep-failed-for`, the time that the exit handler waits before it deletes, in Argo's notation (`30m`).

    Raises:
        ValueError: The workflow has an exit handler or an exit hook already: add `exit_handler()` to its templates,
            and a step with the template `mxjob-cleanup` to that handler. Or two of its templates have the same name.
            Or it refers to a WorkflowTemplate, beside which Argo accepts no templates.
    """
    if (referred := getattr(workflow, "workflow_template_ref", None)) is not None:
        raise ValueError(
            f"Argo takes no templates beside workflow_template_ref: give the exit handler to {referred.name} itself,"
            " delete_jobs_on_exit(template); the shipped templates have it"
        )
    if workflow.on_exit is not None or "exit" in (workflow.hooks or {}):
        raise ValueError(
            "the workflow has an exit handler already, and Argo runs one only: add mxnet_argo.exit_handler() to its"
            f" templates, and a step with the template {EXIT_HANDLER} to the handler that it has"
        )
    given = [str(getattr(each, "name", "")) for each in workflow.templates]
    if twice := sorted({name for name in given if given.count(name) > 1}):
        raise ValueError(f"two templates are named {twice[0]!r}: give each a name of its own")
    if choice is not None:
        workflow.arguments = [
            *as_list(workflow.arguments),
            Parameter(
                name=choice,
                value="delete",
                enum=["delete", "keep"],
                description="what to do with the jobs of a run that did not succeed: delete or keep them",
            ),
            Parameter(
                name=KEEP_FAILED,
                value="0",
                description="how long the run waits before it deletes them, in Argo's notation (30m); the run goes on",
            ),
        ]
    workflow.templates.extend(exit_handler(choice))
    workflow.on_exit = EXIT_HANDLER


def exit_handler(choice: str | None = None) -> list[Steps | Suspend | Resource]:
    """Return the templates of the exit handler, `mxjob-cleanup` first, for a workflow with a handler of its own.

    Within `with workflow:` Hera adds them by itself, and there are none left to add.

    `choice` is the argument by which `keep` can be said, if there is one. A workflow that is retried with `-p` has no
    arguments but those and what it was submitted with: so the handler does without them.
    """
    delete = Resource(
        name=_DELETE,
        inputs=[Parameter(name="which")],
        action="delete",
        flags=[
            f"{names.PLURAL}.{names.GROUP}",
            "--selector",
            f"{WORKFLOW_UID_LABEL}={{{{workflow.uid}}}}",
            "--field-selector",
            "{{inputs.parameters.which}}",
            "--wait=false",
        ],
        # A pod of Argo's may be killed like any other; what it does can be done twice.
        retry_strategy=retry_unless("lastRetry.message contains 'is forbidden'", limit=5, first="2s", cap="1m"),
    )
    ended = "workflow.status != 'Succeeded'"
    keep = []
    if choice is not None:
        ended += f" && (workflow.parameters['{choice}'] ?? 'delete') != 'keep'"
        keep = [Suspend(name=_KEEP, inputs=[Parameter(name="duration")], duration="{{inputs.parameters.duration}}")]
    with Steps(name=EXIT_HANDLER) as steps:
        if keep:
            kept = f"(workflow.parameters['{KEEP_FAILED}'] ?? '0')"
            waits = f"{{{{={ended} && {kept} != '0'}}}}"
            Step(name="delete-unfinished", template=_DELETE, when=waits, arguments=_which(SUCCEEDED, FAILED))
            # A workflow that is stopped, or terminated, while it waits has waited long enough.
            Step(
                name="keep",
                template=_KEEP,
                when=waits,
                arguments={"duration": f"{{{{={kept}}}}}"},
                continue_on=ContinueOn(failed=True, error=True),
            )
        Step(name="delete", template=_DELETE, when=f"{{{{={ended}}}}}", arguments=_which(SUCCEEDED))
    return [] if _context.active else [steps, *keep, delete]


def _which(*kept: str) -> dict[str, str]:
    """Return the argument by which jobs are deleted that are in none of these states."""
    return {"which": ",".join(f"status.state!={state}" for state in kept)}
