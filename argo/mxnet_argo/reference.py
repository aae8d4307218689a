"""A step or task that refers to one of the shipped WorkflowTemplates, with its arguments checked.

Argo finds out about a missing or misspelt argument of a templateRef only when the step begins.
"""

import difflib
import json
from typing import Any, Final, Literal

from hera.workflows import Step, Task, WorkflowTemplate
from hera.workflows.models import TemplateRef

from mxnet_argo.catalog import CATALOG
from mxnet_argo.inputs import parameters

# Made here, outside of any `with workflow:`, in which Hera would add their parts to that workflow.
_ENTRIES: Final = {
    name: (workflow.entrypoint, parameters(workflow.arguments))
    for name, make in CATALOG.items()
    for workflow in (make(WorkflowTemplate),)
}


def mxjob_ref(
    name: str,
    template: str,
    arguments: dict[str, Any],
    *,
    kind: Literal["task", "step"] = "task",
    cluster_scope: bool = False,
    **options: Any,
) -> Task | Step:
    """A task (or step) that runs the entry template of a shipped WorkflowTemplate.

    Args:
        name: the task's name.
        template: `mxjob-train`, `mxjob-runner`, `mxjob-sweep` or `mxjob-tune-then-train`.
        arguments: by input; what isn't text becomes JSON. Argo's tags (`{{inputs.parameters.x}}`) are text.
        kind: a task of a DAG, or a step of Steps.
        cluster_scope: refer to the ClusterWorkflowTemplate of that name.
        options: further fields of Hera's Task or Step.

    Raises:
        ValueError: there is no such template, or an argument is missing or unknown.
    """
    if template not in CATALOG:
        raise ValueError(f"{name}: there is no template {template!r}: {_instead(template, list(CATALOG))}")
    entrypoint, inputs = _ENTRIES[template]
    if unknown := sorted(set(arguments) - set(inputs)):
        raise ValueError(f"{name}: {template} takes no {unknown[0]!r}: {_instead(unknown[0], list(inputs))}")
    if missing := [key for key, each in inputs.items() if key not in arguments and not isinstance(each.value, str)]:
        raise ValueError(f"{name}: {template} needs {', '.join(map(repr, missing))}")
    given = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
    made = Task if kind == "task" else Step
    reference = TemplateRef(name=template, template=entrypoint, cluster_scope=cluster_scope or None)
    return made(name=name, template_ref=reference, arguments=given, **options)


def _instead(wrong: str, known: list[str]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it is one of {', '.join(known)}"


__all__ = ["mxjob_ref"]
