"""A step or task that refers to one of the shipped WorkflowTemplates, with its arguments checked.

Argo finds out about a missing or misspelt argument of a templateRef only when the step begins.
"""

import difflib
import functools
import json
from collections.abc import Mapping
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Literal, overload

from hera.workflows import Parameter, Step, Task, WorkflowTemplate
from hera.workflows.models import Parameter as ModelParameter
from hera.workflows.models import TemplateRef

from mxnet_argo.catalog import CATALOG
from mxnet_argo.inputs import parameters
from mxnet_argo.runner import MXJobRunner
from mxnet_argo.step import MXJobStep
from mxnet_argo.template_job import TemplateJob


@dataclass(frozen=True)
class _Entry:
    """Parameters of a shipped WorkflowTemplate."""

    template: str
    inputs: Mapping[str, Parameter]
    jobs: tuple[TemplateJob, ...]


@functools.cache
def _entry(name: str) -> _Entry:
    # In a context of its own: Hera would add the parts to a `with workflow:` around the call.
    workflow = Context().run(CATALOG[name], WorkflowTemplate)
    jobs = (TemplateJob.of(each) for each in workflow.templates if isinstance(each, MXJobStep | MXJobRunner))
    return _Entry(str(workflow.entrypoint), parameters(workflow.arguments), tuple(jobs))


@overload
def mxjob_ref(
    name: str,
    template: str,
    arguments: Mapping[str, Any],
    *,
    kind: Literal["task"] = "task",
    cluster_scope: bool = False,
    **options: Any,
) -> Task: ...


@overload
def mxjob_ref(
    name: str,
    template: str,
    arguments: Mapping[str, Any],
    *,
    kind: Literal["step"],
    cluster_scope: bool = False,
    **options: Any,
) -> Step: ...


def mxjob_ref(
    name: str,
    template: str,
    arguments: Mapping[str, Any],
    *,
    kind: Literal["task", "step"] = "task",
    cluster_scope: bool = False,
    **options: Any,
) -> Task | Step:
    """Return a task (or step) that runs the entry template of a shipped WorkflowTemplate.

    Args:
        name: the task's name.
        template: `mxjob-train`, `mxjob-runner`, `mxjob-manifest`, `mxjob-sweep` or `mxjob-tune-then-train`.
        arguments: by input; what isn't text becomes JSON. Argo's tags (`{{inputs.parameters.x}}`) are text, and so is
            the value of a Parameter (`task.get_parameter("job")`).
        kind: a task of a DAG, or a step of Steps.
        cluster_scope: refer to the ClusterWorkflowTemplate of that name.
        options: further fields of Hera's Task or Step.

    Raises:
        ValueError: there is no such template, or an argument is missing, unknown, or not what its place takes.
    """
    if template not in CATALOG:
        raise ValueError(f"{name}: there is no template {template!r}: {_instead(template, list(CATALOG))}")
    entry = _entry(template)
    if unknown := sorted(set(arguments) - set(entry.inputs)):
        raise ValueError(f"{name}: {template} takes no {unknown[0]!r}: {_instead(unknown[0], list(entry.inputs))}")
    given = {key: _text(f"{name}: argument {key}", value) for key, value in arguments.items()}
    needed = (key for key, each in entry.inputs.items() if not isinstance(each.default, str))
    if missing := [key for key in needed if key not in given]:
        raise ValueError(f"{name}: {template} needs {', '.join(map(repr, missing))}")
    for job in entry.jobs:
        try:
            job.check({key: text for key, text in given.items() if key in parameters(job.inputs)})
        except ValueError as error:
            raise ValueError(f"{name}: {template}: {error}") from error
    made = Task if kind == "task" else Step
    reference = TemplateRef(name=template, template=entry.template, cluster_scope=cluster_scope or None)
    return made(name=name, template_ref=reference, arguments=given, **options)


def _text(argument: str, value: Any) -> str:
    """Return an argument as Argo has it.

    Raises:
        ValueError: there is no text for it.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Parameter | ModelParameter):
        if value.value is None:
            raise ValueError(f"{argument}: the Parameter {value.name} has no value: give it one, or a text")
        return str(value.value)
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument}: {error}: give a text, a Parameter with a value, or what JSON can say") from error


def _instead(wrong: str, known: list[str]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it is one of {', '.join(known)}"


__all__ = ["mxjob_ref"]
