"""Reading a replica's log as it grows, in a thread of its own."""

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final, Protocol

from urllib3.exceptions import ReadTimeoutError

from mxnet_operator.readers.log_lines import LogCursor, split_lines

_PAUSE: Final = 1.0
_ATTEMPTS: Final = 10


class OpenLog(Protocol):
    """Opens the stream of a log from an RFC 3339 time on; None once the log is gone for good."""

    def __call__(self, since: str | None) -> AbstractContextManager[Iterable[bytes]] | None: ...  # noqa: D102


class LogFollower(threading.Thread):
    """Passes the lines of one replica's log on until its container has ended, or until `stop`.

    No trouble with a log fails a task: after ten broken streams in a row that brought nothing, it warns and
    gives up. `pause` is called when a stream has ended or brings nothing for a while.
    """

    def __init__(
        self,
        name: str,
        open_log: OpenLog,
        has_ended: Callable[[], bool],
        emit: Callable[[str], None],
        warn: Callable[[str], None],
        *,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name=f"log of {name}", daemon=True)
        self.complete = False
        self._open = open_log
        self._has_ended = has_ended
        self._emit = emit
        self._warn = warn
        self._on_pause = pause
        self._lines = 0
        self._stop_asked = threading.Event()

    def stop(self) -> None:
        """Ask the thread to end after the line it is at."""
        self._stop_asked.set()

    def run(self) -> None:
        """Read until one stream, opened after the container's end, has come to its own end."""
        cursor = LogCursor()
        failures = 0
        while not self._stop_asked.is_set():
            before = self._lines
            try:
                ended = self._has_ended()
                self._read_once(cursor)
                if ended:
                    self.complete = True
                    return
            except ReadTimeoutError:
                self._on_pause()
                continue  # a quiet log is no broken one
            except Exception as e:
                failures = 1 if self._lines > before else failures + 1
                if failures == _ATTEMPTS:
                    self._warn(f"gave up reading the log: {type(e).__name__}: {e}")
                    return
            self._on_pause()
            self._stop_asked.wait(_PAUSE)

    def _read_once(self, cursor: LogCursor) -> None:
        stream = self._open(cursor.reconnect())
        if stream is None:
            return
        with stream as chunks:
            for line in split_lines(chunks):
                if self._stop_asked.is_set():
                    return
                text = cursor.take(line)
                if text is not None:
                    self._lines += 1
                    self._emit(text)
