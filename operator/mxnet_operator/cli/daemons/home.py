"""The folder for local state, for a command: in one line why it can't be used."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mxnet_operator.cli.errors import CommandError, extra_needed

RESTART_BACKOFF: Final = 1.0
"""Seconds before the first restart of a job of the local cluster, unless told."""


@contextlib.contextmanager
def usable_home() -> Iterator[Path]:
    """Yield the folder for local state.

    Raises:
        CommandError: it can't be made, read or written by what the body does.
    """
    with extra_needed("local"):
        from mxnet_operator.local.home import HomeError, full_disk, mxjob_home  # noqa: PLC0415

    try:
        home = mxjob_home()
    except HomeError as error:
        raise CommandError(str(error)) from error
    try:
        yield home
    except HomeError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        if full := full_disk(home, error):
            raise CommandError(full) from error
        if not error.filename or not Path(os.fsdecode(error.filename)).is_relative_to(home):
            raise
        raise CommandError(str(HomeError.of(home, error))) from error
