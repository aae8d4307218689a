"""Writes docs/airflow-reference.md, the parameters of the Airflow provider's classes, from their docstrings."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any, get_type_hints

from type_names import type_name

from mxnet_operator.description import MXJobDescription
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook
from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.operators.mxnet_job_delete import MXNetJobDeleteOperator
from mxnet_provider.operators.mxnet_sweep import MXNetBestTrialOperator, MXNetSweep
from mxnet_provider.operators.mxnet_tune import MXNetTuneOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor

CLASSES = (
    MXNetJobOperator,
    MXNetTuneOperator,
    MXNetSweep,
    MXNetBestTrialOperator,
    MXNetJobDeleteOperator,
    MXNetJobSensor,
    MXNetJobHook,
    MXNetJobAsyncHook,
)
TARGET = Path(__file__).resolve().parent.parent / "docs" / "airflow-reference.md"
HEAD = """# Airflow classes

[How to use them](airflow.md), and [what happens](airflow-events.md) when a task is killed or retried.
Operators and sensors take keyword arguments only. † marks templated ones.
A `dict` is a Kubernetes object; a model of `kubernetes.client` is accepted, too.

<!-- Made from the docstrings by `make generate`. -->
"""
_DESCRIBED = get_type_hints(MXJobDescription)


def reference() -> str:
    """The whole document."""
    return "\n".join([HEAD, *(_section(cls) for cls in CLASSES)])


def _section(cls: type) -> str:
    doc = inspect.getdoc(cls) or ""
    text, _, arguments = doc.partition("\nArgs:\n")
    rows = [
        f"| `{name}`{_mark(cls, name)} | {_type(cls, name)} | {_default(cls, name)} | {words} |"
        for name, words in _arguments(arguments)
    ]
    table = ["| parameter | type | default | what it is |", "|---|---|---|---|", *rows]
    return "\n".join([f"## {cls.__name__}", "", f"`{cls.__module__}`", "", text.strip(), "", *table, ""])


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


def _mark(cls: Any, name: str) -> str:
    return "†" if name in getattr(cls, "template_fields", ()) else ""


def _type(cls: Any, name: str) -> str:
    parameter = _parameters(cls).get(name)
    if parameter is None:
        return type_name(_DESCRIBED[name]) if _is_described(cls, name) else ""
    return (
        "" if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) else type_name(parameter.annotation)
    )


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
    """Whether an operator takes the field of a job's description."""
    return name in _DESCRIBED and bool(_mark(cls, name))


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    found: dict[str, inspect.Parameter] = {}
    for each in reversed(cls.__mro__):
        if each.__module__.startswith("mxnet_provider") and "__init__" in vars(each):
            found |= inspect.signature(vars(each)["__init__"]).parameters
    return found


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
