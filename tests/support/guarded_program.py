"""A program that a test starts and speaks with, and that doesn't keep the test from failing."""

import subprocess
import threading
from types import TracebackType
from typing import Any

from waiting import MINUTES


class GuardedProgram(subprocess.Popen[str]):
    """Popen that is killed where a test fails within its context, or once it has run for longer than any takes.

    Popen's own context waits for the program's end, and who reads its output for the next line: neither may ever come.
    """

    def __init__(self, *args: Any, seconds: float = 2 * MINUTES, **options: Any) -> None:
        super().__init__(*args, text=True, **options)
        self._guard = threading.Timer(seconds, self.kill)
        self._guard.daemon = True
        self._guard.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pipes, and wait for the end."""
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, trace)
        self._guard.cancel()
