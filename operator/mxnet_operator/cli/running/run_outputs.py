"""Output files of `mxjob run` for the program that started it: job name, state, message, result and volumes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mxnet_operator.api.conditions import job_state
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.readers.volumes import kept_volumes

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
        """Take the newest version of the job."""
        self.job, self.name = job, job["metadata"]["name"]

    def begin(self) -> None:
        """Write the files before the job is created, so that they exist however the run ends.

        Raises:
            CommandError: they can't be written (exit code 2).
        """
        self._write(Exit.USAGE)

    def write(self, code: Exit) -> None:
        """Write the outcome; a message file that can't be written is only reported.

        Raises:
            CommandError: the files of the folder can't be written, for which `code` is the exit code.
        """
        if self.message_file is not None and self.message:
            text = self.message.encode("utf-8", "replace")[:_MESSAGE_BYTES].decode("utf-8", "ignore")
            try:
                self.message_file.write_text(text, encoding="utf-8", errors="replace")
            except OSError as error:
                say(f"--message-file: {self.message_file}: {error.strerror or error}")
        self._write(code)

    def _write(self, code: Exit) -> None:
        if self.folder is None:
            return
        job = self.job or {}
        result = (job.get("status") or {}).get("result") or ""
        files = ", ".join(map(str, kept_volumes(job)))
        texts = {
            "job": self.name,
            "state": job_state(job),
            "message": self.message,
            "result": result,
            "files": files,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (self.folder / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            where = error.filename or self.folder
            raise CommandError(f"--output-dir: {where}: {error.strerror or error}", code=code) from error
