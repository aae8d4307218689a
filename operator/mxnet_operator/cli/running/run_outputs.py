"""Output files of `mxjob run`: for the program that started it, and the report on a job that has ended."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mxnet_operator.api.conditions import job_state
from mxnet_operator.cli.errors import CommandError, Exit, UsageError
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.readers.volumes import kept_volumes
from mxnet_operator.report import Run, html

_MESSAGE_BYTES: Final = 4096
"""Kubernetes' limit of a termination message."""


class ReportError(CommandError):
    """The report on a job that has ended can't be written; the job's outcome is known."""


@dataclass
class Record:
    """State of a run's job so far, and the files that it is written to.

    Args:
        name: name of the job; empty until a generated one is known.
        folder: folder for the files `job`, `state`, `message`, `result` and `files`, without a newline at their ends.
        message_file: file for the message, cut to the size of a container's termination message.
    """

    name: str = ""
    folder: Path | None = None
    message_file: Path | None = None
    message: str = ""
    job: dict[str, Any] | None = field(default=None, init=False)

    def seen(self, job: dict[str, Any]) -> None:
        self.job, self.name = job, job["metadata"]["name"]

    def say(self, message: str) -> None:
        """Show a message, and keep it as the run's."""
        self.message = message
        say(message)

    def write(self, code: Exit) -> None:
        """Write the files as far as the run is; a message file that can't be written is only reported.

        Raises:
            CommandError: the files of the folder can't be written, for which `code` is the exit code.
        """
        if self.message_file is not None and self.message:
            text = self.message.encode("utf-8", "replace")[:_MESSAGE_BYTES].decode("utf-8", "ignore")
            try:
                self.message_file.write_text(text, encoding="utf-8", errors="replace")
            except OSError as error:
                say(f"--message-file: {self.message_file}: {error.strerror or error}")
        if self.folder is None:
            return
        job = self.job or {}
        texts = {
            "job": self.name,
            "state": job_state(job),
            "message": self.message,
            "result": (job.get("status") or {}).get("result") or "",
            "files": ", ".join(map(str, kept_volumes(job))),
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (self.folder / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            where = error.filename or self.folder
            raise CommandError(f"--output-dir: {where}: {error.strerror or error}", code=code) from error


def check_report(path: Path) -> None:
    """Reject a report file that couldn't be written once the job has ended.

    Raises:
        CommandError: the file can't be written there.
    """
    try:
        if path.is_dir():
            problem = "it is a folder"
        elif not path.parent.is_dir():
            problem = f"there is no folder {path.parent}"
        else:
            is_writable = os.access(path if path.exists() else path.parent, os.W_OK)
            problem = "" if is_writable else "it can't be written"
    except OSError as error:  # a name that is too long, or a folder that isn't this user's
        problem = str(error.strerror)
    if problem:
        raise UsageError(f"--report {path}: {problem}")


def write_report(path: Path, read: Callable[[], Run]) -> None:
    """Write the report of a finished job, which `read` returns.

    Raises:
        ReportError: the report can't be drawn, or the file can't be written.
    """
    try:
        page = html(read())
    except Exception as error:  # whatever a picture fails by, the job's outcome is known
        raise ReportError(f"the report can't be drawn: {type(error).__name__}: {error}") from error
    try:
        path.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise ReportError(f"the report can't be written: {error}") from error
