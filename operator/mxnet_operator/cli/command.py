"""Commands that talk to an API server: their connection options, and the exit code from their result."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mxnet_operator.cli.errors import Exit, leave
from mxnet_operator.cli.interrupts import unless_interrupted
from mxnet_operator.cli.server.connection import ContextOption, KubeconfigOption, NamespaceOption, Target

_OPTIONS: Final = {"kubeconfig": KubeconfigOption, "context": ContextOption, "namespace": NamespaceOption}


def asks_server(work: Callable[..., Coroutine[Any, Any, Exit]]) -> Callable[..., None]:
    """Make a command of `work`, whose first parameter is the Target built from the command's last three options.

    The first signal cancels the work.
    """

    @functools.wraps(work)
    def command(**given: Any) -> None:
        target = Target(**{name: given.pop(name, None) for name in _OPTIONS})
        leave(asyncio.run(unless_interrupted(work(target, **given))))

    _, *own = inspect.signature(work).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(name, keyword, default=None, annotation=each) for name, each in _OPTIONS.items()]
    command.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]  # typer reads it
    return command
