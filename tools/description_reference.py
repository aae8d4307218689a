"""Writes docs/description-reference.md, the fields of a job's description, from its classes."""

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_type_hints

from type_names import type_name

from mxnet_operator.cli import mxjob
from mxnet_operator.cli.app import whole
from mxnet_operator.description import MXJobDescription, Role
from mxnet_operator.description.pods import PodDescription

TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "description-reference.md"
HEAD: Final = """# Fields of a description

[How to describe a job](description.md). The fields are the same in `MXJobDescription` (Python), `MXNetJobOperator`
(Airflow), `MXJobSpec` (Hera) and the options of `mxjob run`.
A `dict` is a Kubernetes object; a model of `kubernetes.client` is accepted, too.

<!-- Generated from the classes by `make generate`. -->
"""
_OPTIONS: Final = {
    "command": "`-- COMMAND...`",
    "volume_mounts": "`--volume`",
    "secrets": "`--secret`",
    "config_maps": "`--config-map`",
    "volumes": "`--volume`",
    "image_pull_secrets": "`--image-pull-secret`",
}
"""Where the option isn't the field's name."""


def reference() -> str:
    """The whole document."""
    described = {**_entries(PodDescription), **_entries(MXJobDescription)}
    of_a_role = {**_entries(PodDescription), **_entries(Role)}
    options = set(_options())
    types = {**get_type_hints(MXJobDescription), **get_type_hints(Role)}
    rows = [
        f"| `{name}`{_option(name, options)} | {type_name(types[name])} | {described[name]} |"
        for name in (field.name for field in dataclasses.fields(MXJobDescription))
    ]
    only = [f"| `{name}` | {type_name(types[name])} | {of_a_role[name]} |" for name in _entries(Role)]
    return "\n".join(
        [
            HEAD,
            "## MXJobDescription",
            "",
            "| field, option of `mxjob run` | type | what it is |",
            "|---|---|---|",
            *rows,
            "",
            "## Role",
            "",
            "`workers`, `servers` and `schedulers` take one in place of a number: `Role(replicas=2, gpus=1)`, or a"
            " mapping with the same names. It has the fields of pods and containers above, and:",
            "",
            "| field | type | what it is |",
            "|---|---|---|",
            *only,
            "",
        ]
    )


def _entries(cls: type) -> dict[str, str]:
    """The entries of a docstring's Args."""
    found: dict[str, str] = {}
    name = ""
    arguments = (inspect.getdoc(cls) or "").partition("Args:\n")[2].partition("\nRaises:")[0]
    for line in arguments.splitlines():
        if entry := re.match(r"    (\w+): (.*)", line):
            name = entry[1]
            found[name] = entry[2]
        elif line.strip():
            found[name] += " " + line.strip()
    return {name: text.replace("|", "\\|") for name, text in found.items()}


def _options() -> Iterator[str]:
    run: Any = whole(mxjob.app)
    for parameter in run.commands["run"].params:
        yield from parameter.opts


def _option(field: str, options: set[str]) -> str:
    if field in _OPTIONS:
        return f", {_OPTIONS[field]}"
    flag = "--" + field.replace("_", "-")
    return f", `{flag}`" if flag in options else ""


if __name__ == "__main__":
    TARGET.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
