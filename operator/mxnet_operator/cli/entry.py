"""Entry points of the console scripts. They import the programs, so that Ctrl-C meanwhile leaves no traceback."""

import atexit
import gc
import sys
from typing import Final

_INTERRUPTED: Final = 130
"""`Exit.INTERRUPTED`, whose module an interrupt may keep from being imported."""


def mxjob() -> None:
    atexit.register(gc.freeze)  # else Python collects garbage before it exits: a fifth of a short command's CPU
    try:
        from mxnet_operator.cli.mxjob import main  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    main()


def mxnet_operator() -> None:
    try:
        from mxnet_operator.cli.mxnet_operator import main  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    main()
