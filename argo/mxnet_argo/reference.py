"""A step or task that refers to one of the shipped WorkflowTemplates, with its arguments checked.

Argo finds out about a missing or misspelt argument of a templateRef only when the step begins.
"""

import difflib
import functools
import json
import re
from collections.abc import Mapping
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final, Literal, overload

from hera.workflows import Parameter, Step, Task
from hera.workflows._mixins import TemplateInvocatorSubNodeMixin
from hera.workflows.models import Parameter as ModelParameter
from hera.workflows.models import TemplateRef

from mxnet_argo.catalog import CATALOG
from mxnet_argo.checked_job import CheckedJob
from mxnet_argo.inputs import as_list, parameters
from mxnet_argo.pipelines import TRIALS, check_trials
from mxnet_argo.runner import MXJobRunner
from mxnet_argo.step import MXJobStep
from mxnet_argo.values import as_json

_TAG: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_ITEM: Final = "{{item}}"
_REFERENCES: Final = "references"
"""An argument that no template takes, with the tags that are written as expressions in others: Argo checks references
when a workflow is submitted, but not those of expressions. A step with a wrong one would wait for ever."""


@dataclass(frozen=True)
class _Entry:
    """Parameters of a shipped WorkflowTemplate."""

    template: str
    inputs: Mapping[str, Parameter]
    outputs: tuple[str, ...]
    jobs: tuple[CheckedJob, ...]


@functools.cache
def _entry(name: str) -> _Entry:
    # In a context of its own: Hera would add the parts to a `with workflow:` around the call.
    workflow = Context().run(CATALOG[name])
    jobs = (CheckedJob(each) for each in workflow.templates if isinstance(each, MXJobStep | MXJobRunner))
    (entry,) = (each for each in workflow.templates if getattr(each, "name", None) == workflow.entrypoint)
    # Not the workflow's arguments: on-failure is for its exit handler, which a reference leaves out.
    inputs, outputs = (parameters(getattr(entry, each, None)) for each in ("inputs", "outputs"))
    return _Entry(str(workflow.entrypoint), inputs, tuple(outputs), tuple(jobs))


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
        name: Name of the task.
        template: `mxjob-train`, `mxjob-runner`, `mxjob-manifest`, `mxjob-sweep` or `mxjob-tune-then-train`.
        arguments: Value of each input; what isn't text becomes JSON. Values may be Argo's tags
            (`{{inputs.parameters.x}}`) or Parameters (`task.get_parameter("result")`). Within a list or mapping each
            stays one value, whatever characters it has: `["--from", task.get_parameter("result")]`.
        kind: Whether to return a task of a DAG or a step of Steps.
        cluster_scope: Refer to the ClusterWorkflowTemplate of that name.
        options: Further fields of Hera's Task or Step.

    Raises:
        ValueError: The template doesn't exist, or an argument is missing, unknown or of the wrong type.
    """
    if template not in CATALOG:
        raise ValueError(f"{name}: there is no template {template!r}: {_instead(template, list(CATALOG))}")
    entry = _entry(template)
    if unknown := sorted(set(arguments) - set(entry.inputs)):
        raise ValueError(f"{name}: {template} takes no {unknown[0]!r}: {_instead(unknown[0], list(entry.inputs))}")
    tags: list[str] = []
    given = {key: _text(f"{name}: argument {key}", value, tags) for key, value in arguments.items()}
    needed = (key for key, each in entry.inputs.items() if not isinstance(each.default, str))
    if missing := [key for key in needed if key not in given]:
        raise ValueError(f"{name}: {template} needs {', '.join(map(repr, missing))}")
    for key, text in given.items():
        choices = [str(each) for each in entry.inputs[key].enum or ()]
        if choices and text not in choices and "{{" not in text:
            raise ValueError(f"{name}: {template}: {key} is {text!r}: {_instead(text, choices)}")
    for job in entry.jobs:
        try:
            job.check({key: text for key, text in given.items() if key in parameters(job.inputs)})
        except ValueError as error:
            raise ValueError(f"{name}: {template}: {error}") from error
    if TRIALS in given and "{{" not in given[TRIALS]:
        try:
            check_trials(given[TRIALS])
        except ValueError as error:
            raise ValueError(f"{name}: argument {TRIALS}: {error}") from error
    if _ITEM in tags and any(isinstance(each, Mapping) for each in as_list(options.get("with_items"))):
        raise ValueError(f"{name}: {_ITEM} is a mapping, of which a list takes the fields, such as {{{{item.lr}}}}")
    if tags:
        given[_REFERENCES] = " ".join(dict.fromkeys(tags))
    made = _Task if kind == "task" else _Step
    reference = TemplateRef(name=template, template=entry.template, cluster_scope=cluster_scope or None)
    return made(name=name, template_ref=reference, arguments=given, **options)


class _Reference(TemplateInvocatorSubNodeMixin):
    """Step or task that refers to a shipped template, whose outputs Hera doesn't know."""

    def get_parameter(self, name: str) -> Parameter:
        """Return an output of the template, for an argument of another step or task.

        Raises:
            ValueError: the template has no such output.
        """
        reference = self.template_ref
        outputs = _entry(str(reference.name)).outputs if isinstance(reference, TemplateRef) else ()
        if name not in outputs:
            raise ValueError(f"{self.name}: there is no output {name!r}: {_instead(name, list(outputs))}")
        return Parameter(name=name, value=f"{{{{{self._subtype}.{self.name}.outputs.parameters.{name}}}}}")

    @property
    def result(self) -> str:
        """The tag of the output `result`; of a script's `outputs.result`, which Hera means, a job has none."""
        return str(self.get_parameter("result").value)


class _Task(_Reference, Task):
    """Task of a DAG."""


class _Step(_Reference, Step):
    """Step of Steps."""


def _text(argument: str, value: Any, tags: list[str]) -> str:
    """Return an argument as Argo has it; `tags` gets those that are written as expressions in it."""
    if isinstance(value, Parameter | ModelParameter):
        value = _tag(argument, value)
    if isinstance(value, str):
        try:
            parsed = json.loads(value) if "{{" in value else None
        except ValueError:
            return value
        return _json(argument, parsed, tags) if isinstance(parsed, list | dict) else value
    return _json(argument, value, tags)


def _tag(argument: str, parameter: Parameter | ModelParameter) -> str:
    if parameter.value is None:
        raise ValueError(f"{argument}: the Parameter {parameter.name} has no value: give it one, or a text")
    return str(parameter.value)


def _json(argument: str, value: Any, found: list[str]) -> str:
    """Return a value as JSON, in which each text with Argo's tags in it is one expression of a JSON text.

    A tag would paste text into the JSON, and whatever quotes the text has end their place.
    """
    tags: dict[str, str] = {}

    def encoded(node: Any) -> Any:
        if isinstance(node, Parameter | ModelParameter):
            node = _tag(argument, node)
        if isinstance(node, Mapping):
            return {key: encoded(each) for key, each in node.items()}
        if isinstance(node, list | tuple):
            return [encoded(each) for each in node]
        if isinstance(node, str) and "{{" in node:
            token = f"mxnet-argo-tag-{len(tags)}-"
            tags[json.dumps(token)] = f"{{{{={as_json(_expression(argument, node))}}}}}"
            found.extend(each[0] for each in _TAG.finditer(node) if not each[1].startswith("="))
            return token
        return node

    try:
        text = json.dumps(encoded(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{argument}: {error}: give a text, a Parameter with a value, or what JSON can say") from error
    for token, tag in tags.items():
        text = text.replace(token, tag)
    return text


def _expression(argument: str, text: str) -> str:
    """Return Argo's expression of a text with tags in it."""
    plain = _TAG.split(text)  # texts, and between them what tags are of
    if any("{{" in each for each in plain[::2]):
        raise ValueError(f"{argument}: Argo can't read {text!r}: a tag ends with two braces")
    parts = []
    for index, part in enumerate(plain):
        if index % 2 == 0:
            parts += [json.dumps(part, ensure_ascii=False)] if part else []
        elif part.startswith("="):
            parts.append(f"string({part[1:]})")
        else:
            first, *members = part.strip().split(".")
            parts.append(first + "".join(f".{each}" if each.isidentifier() else f"['{each}']" for each in members))
    return " + ".join(parts)


def _instead(wrong: str, known: list[str]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it is one of {', '.join(known)}"
