"""The folder for local state, for a command: in one line why it can't be used."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from mxnet_operator.cli.errors import CommandError, extra_needed
from mxnet_operator.local.home import ClusterFiles, HomeError, cluster_files, full_disk, mxjob_home


@contextlib.contextmanager
def usable_home() -> Iterator[Path]:
    """Yield the folder for local state.

    Raises:
        CommandError: it can't be made, read or written by what the body does, or the extra `local` isn't installed.
    """
    with extra_needed("local"):
        try:
            home = mxjob_home()
            try:
                yield home
            except OSError as error:
                if full := full_disk(home, error):
                    raise CommandError(full) from error
                if not error.filename or not Path(os.fsdecode(error.filename)).is_relative_to(home):
                    raise
                raise HomeError.of(home, error) from error
        except HomeError as error:
            raise CommandError(str(error)) from error


@contextlib.contextmanager
def usable_files() -> Iterator[ClusterFiles]:
    """Yield the paths of the local cluster's files, as `usable_home` does their folder."""
    with usable_home() as home:
        yield cluster_files(home)
