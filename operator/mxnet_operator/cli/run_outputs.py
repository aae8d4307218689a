"""What a run leaves in files for the program that started it: the job, its state, its message and its result."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mxnet_operator.api.conditions import job_state
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.terminal import say

_MESSAGE_BYTES: Final = 4096
"""As much as Kubernetes reads of a termination message."""


@dataclass
class Record:
    """What is known of a run's job so far, and where it is to be written.

    Args:
        name: of the job; empty until a generated one is known.
        folder: gets the files `job`, `state`, `message` and `result`, without a newline at their ends.
        message_file: gets the message, shortened to what Kubernetes takes as a container's termination message.
    """

    name: str = ""
    folder: Path | None = None
    message_file: Path | None = None
    message: str = ""
    job: dict[str, Any] | None = field(default=None, init=False)

    def seen(self, job: dict[str, Any]) -> None:
        """Note the newest version of the job."""
        self.job, self.name = job, job["metadata"]["name"]

    def begin(self) -> None:
        """Write what is known before the start: whoever reads the files finds them, however this ends.

        Raises:
            CommandError: they can't be written (exit code 2).
        """
        self._write(Exit.USAGE)

    def write(self, code: Exit) -> None:
        """Write how it ended. That the message file can't be written is said, and no more: nobody depends on it.

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
        texts = {"job": self.name, "state": job_state(job), "message": self.message, "result": result}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (self.folder / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            where = error.filename or self.folder
            raise CommandError(f"--output-dir: {where}: {error.strerror or error}", code=code) from error
