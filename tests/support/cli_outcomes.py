"""A command of `mxjob` in the test's own process and event loop."""

import asyncio
import types
from collections.abc import Coroutine
from typing import Any

import pytest
import typer
from waiting import MOMENT

from mxnet_operator.cli import command
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.mxjob import app
from mxnet_operator.cli.verbs import run


async def outcome(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[Exit, str]:
    """The exit code of a command and its last word; an exception that no user should see is raised."""
    works: list[Coroutine[Any, Any, Exit]] = []

    def run_later(work: Coroutine[Any, Any, Exit]) -> None:
        works.append(work)
        raise typer.Exit

    for module in (command, run):
        monkeypatch.setattr(module, "asyncio", types.SimpleNamespace(run=run_later))
    try:
        app(list(words), standalone_mode=False)
        return await asyncio.wait_for(works[0], MOMENT), ""
    except CommandError as error:
        return error.code, error.message
