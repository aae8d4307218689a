"""Entry points of the console scripts. They import the programs, so that Ctrl-C meanwhile leaves no traceback."""

import atexit
import gc
import importlib
import sys
from typing import Final

_INTERRUPTED: Final = 130
"""`Exit.INTERRUPTED`, whose module an interrupt may keep from being imported."""


def mxjob() -> None:
    atexit.register(gc.freeze)  # else Python collects garbage before it exits: a fifth of a short command's CPU
    _run("mxjob")


def mxnet_operator() -> None:
    _run("mxnet_operator")


def _run(program: str) -> None:
    try:
        module = importlib.import_module(f"mxnet_operator.cli.{program}")
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    module.main()
