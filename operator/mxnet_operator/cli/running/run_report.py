"""Report on a job that a command followed to its end, from its API objects and its log."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.running.run_outputs import ReportError
from mxnet_operator.dashboard.job_run import run_of
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.report import html


def check_report(path: Path) -> None:
    """Reject a report file that couldn't be written once the job has ended.

    Raises:
        CommandError: the file can't be written there.
    """
    if problem := _why_unwritable(path):
        raise CommandError(f"--report {path}: {problem}", code=Exit.USAGE)


def _why_unwritable(path: Path) -> str:
    """Return why a file can't be written; empty if it can."""
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError as error:
        return str(error.strerror)
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    return "" if os.access(path if path.exists() else path.parent, os.W_OK) else "it can't be written"


def write_report(
    path: Path,
    job: dict[str, Any],
    pods: Iterable[dict[str, Any]],
    training: TrainingLog,
    *,
    written: Sequence[str] = (),
    events: Sequence[dict[str, Any]] = (),
    versions: Mapping[str, str] | None = None,
) -> None:
    """Write the report of a finished job; `written` says what its replicas left outside of volumes.

    `versions` are those in its images, by image.

    Raises:
        ReportError: the report can't be drawn, or the file can't be written.
    """
    try:
        page = html(run_of(job, pods, training, written=written, events=events, versions=versions))
    except Exception as error:  # whatever a picture fails by, the job's outcome is known
        raise ReportError(f"the report can't be drawn: {type(error).__name__}: {error}") from error
    try:
        path.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise ReportError(f"the report can't be written: {error}") from error
