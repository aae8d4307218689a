"""Writes docs/airflow-reference.md, the parameters of the Airflow provider's classes, from their docstrings."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any, get_type_hints

from type_names import type_name

from mxnet_operator.description.description import MXJobDescription
from mxnet_operator.description.pods import PodDescription
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook
from mxnet_provider.operators.described_job import JobDescriptionMixin
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.operators.mxnet_job_delete import MXNetJobDeleteOperator
from mxnet_provider.operators.mxnet_sweep import MXNetSweep
from mxnet_provider.operators.mxnet_tune import MXNetTuneOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

CLASSES = (
    MXNetJobOperator,
    MXNetTuneOperator,
    MXNetSweep,
    MXNetJobDeleteOperator,
    MXNetJobSensor,
    MXNetJobHook,
    MXNetJobAsyncHook,
)
TARGET = Path(__file__).resolve().parent.parent / "docs" / "airflow-reference.md"
HEAD = """# Airflow classes

[How to use them](airflow.md), and [what happens](airflow-events.md) when a task is killed or retried.
Operators and sensors take keyword arguments only, and those of every operator. † marks templated ones.
A `dict` is a Kubernetes object; a model of `kubernetes.client` is accepted, too.

<!-- Made from the docstrings by `make generate`. -->
"""
_DESCRIBED = get_type_hints(MXJobDescription)


def reference() -> str:
    """The whole document."""
    return "\n".join([HEAD, *(_section(cls, CLASSES[:at]) for at, cls in enumerate(CLASSES))])


def _section(cls: type, before: tuple[type, ...]) -> str:
    text = (inspect.getdoc(cls) or "").partition("\nArgs:\n")[0]
    parameters = [each for each in described(cls) if _type(cls, each[0]) or len(each[1].split()) > 6]
    of_a_job = [name for name, words in parameters if _is_described(cls, name) and words == _OF_A_JOB[name]]
    shared = [name for name, words in parameters if any((name, words) in described(each) for each in before)]
    rows = [
        f"| `{name}`{_mark(cls, name)} | {_type(cls, name)} | {_default(cls, name)} | {words} |"
        for name, words in parameters
        if name not in (*of_a_job, *shared)
    ]
    parts = [f"## {cls.__name__}", "", f"`{cls.__module__}`", "", text.strip()]
    if of_a_job:
        fields = "[The fields of a job](description-reference.md), each templated and by default None"
        parts += ["", f"{fields}: {_names(of_a_job)}."]
    if shared:
        parts += ["", f"As above: {_names(shared)}."]
    if rows:
        parts += ["", "| parameter | type | default | what it is |", "|---|---|---|---|", *rows]
    return "\n".join([*parts, ""])


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def described(cls: type) -> list[tuple[str, str]]:
    """The arguments of a class and of its bases without a section of their own, then the fields of a description."""
    documented = {base for each in CLASSES if each in cls.__mro__[1:] for base in each.__mro__}
    sources = [each for each in cls.__mro__ if each.__module__.startswith("mxnet_provider") and each not in documented]
    if JobDescriptionMixin in sources:
        sources += [PodDescription, MXJobDescription]
    found: dict[str, str] = {}
    for each in sources:
        for name, words in _arguments((inspect.getdoc(each) or "").partition("\nArgs:\n")[2]):
            found.setdefault(name, words)
    names = dict.fromkeys([*(name for name in _parameters(cls) if name in found), *found])
    return [(name, found[name]) for name in sorted(names, key="kwargs".__eq__)]


def _arguments(text: str) -> list[tuple[str, str]]:
    """The entries of a docstring's Args: what is indented further goes on with the entry before."""
    entries: list[list[str]] = []
    for line in text.splitlines():
        if found := re.match(r"    (\w+): (.*)", line):
            entries.append([found[1], found[2]])
        elif line.startswith("     ") and entries:
            entries[-1][1] += " " + line.strip()
        elif line and not line.startswith(" "):
            break
    return [(name, words.replace(" (templated)", "").replace("|", "\\|")) for name, words in entries]


_OF_A_JOB = {
    name: words
    for cls in (MXJobDescription, PodDescription)
    for name, words in _arguments((inspect.getdoc(cls) or "").partition("\nArgs:\n")[2])
}


def _mark(cls: Any, name: str) -> str:
    return "†" if name in getattr(cls, "template_fields", ()) else ""


def _type(cls: Any, name: str) -> str:
    if _is_described(cls, name):
        return type_name(_DESCRIBED[name])
    parameter = _parameters(cls).get(name)
    if parameter is None or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
        return ""
    return type_name(parameter.annotation)


def _default(cls: Any, name: str) -> str:
    parameter = _parameters(cls).get(name)
    if parameter is None:
        return "`None`" if _is_described(cls, name) else ""
    if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
        return ""
    if parameter.default is parameter.empty:
        return "required"
    return f"`{parameter.default.__name__ if isinstance(parameter.default, type) else repr(parameter.default)}`"


def _is_described(cls: Any, name: str) -> bool:
    """Whether an operator takes the field of a job's description, whose type says more than the operator's own."""
    return name in _DESCRIBED and issubclass(cls, JobDescriptionMixin)


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    found: dict[str, inspect.Parameter] = {}
    for each in reversed(cls.__mro__):
        if each.__module__.startswith("mxnet_provider") and "__init__" in vars(each):
            found |= inspect.signature(vars(each)["__init__"]).parameters
    return found


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
