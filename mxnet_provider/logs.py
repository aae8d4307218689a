"""Reading a replica's log as it grows: every line once, over any number of broken connections."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final, Protocol

from urllib3.exceptions import ReadTimeoutError

_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?")
_LONGEST_LINE: Final = 64 * 1024
_PAUSE: Final = 1.0
_ATTEMPTS: Final = 10

Key = tuple[bytes, bytes]


class LineSplitter:
    """Cuts the chunks of a byte stream into lines, without their ends.

    A line longer than 64 KiB comes in pieces: a log without newlines must not fill the memory.
    """

    def __init__(self) -> None:
        self.rest = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that the chunk completes."""
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        yield from lines
        while len(self.rest) > _LONGEST_LINE:
            yield self.rest[:_LONGEST_LINE]
            self.rest = self.rest[_LONGEST_LINE:]


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a byte stream, without their ends.

    When the stream breaks, so does the iteration, before the unfinished line: it is read again after reconnecting.
    """
    splitter = LineSplitter()
    for chunk in chunks:
        yield from splitter.feed(chunk)
    if splitter.rest:
        yield splitter.rest


class LogCursor:
    """Where the reading of one log has got to, from the timestamps that the kubelet puts before each line.

    A stream can only be resumed from a whole second (`sinceTime`), so the lines of that second which were
    seen before come again; they are dropped by their timestamp, and by count where several lines share one.
    """

    def __init__(self, state: Sequence[Any] | None = None) -> None:
        self.since: str | None = None
        self._last: Key = (b"", b"")
        self._seen_at_last = 0
        if state is not None:
            self.since, nanoseconds, self._seen_at_last = state
            self._last = (str(self.since)[:19].encode(), str(nanoseconds).encode())
        self._to_skip = 0
        self._resuming = False

    def state(self) -> list[Any]:
        """Where the reading has got to, as JSON from which another cursor goes on."""
        return [self.since, self._last[1].decode(), self._seen_at_last]

    @property
    def moment(self) -> float:
        """When the last line was written, in seconds since the epoch by the node's clock; 0 before the first."""
        return datetime.fromisoformat(self.since).timestamp() if self.since else 0.0

    def reconnect(self) -> str | None:
        """Begin another stream; returns the RFC 3339 time to ask it from, None for the log's beginning."""
        self._resuming = self.since is not None
        self._to_skip = self._seen_at_last
        return self.since

    def take(self, line: bytes) -> str | None:
        """The text of a stamped line, or None where it was seen before. Undecodable bytes become U+FFFD."""
        stamp = _STAMP.match(line)
        if stamp is None:
            return None if self._resuming else _text(line)
        key = (stamp[1], (stamp[2] or b"").ljust(9, b"0"))
        if self._resuming:
            if key < self._last:
                return None
            if key == self._last and self._to_skip > 0:
                self._to_skip -= 1
                return None
            self._resuming = False
        self._seen_at_last = self._seen_at_last + 1 if key == self._last else 1
        self._last = key
        self.since = (stamp[1] + stamp[3]).decode()
        return _text(line[stamp.end() :])


class OpenLog(Protocol):
    """Opens the stream of a log from an RFC 3339 time on; None once the log is gone for good."""

    def __call__(self, since: str | None) -> AbstractContextManager[Iterable[bytes]] | None: ...  # noqa: D102


class LogFollower(threading.Thread):
    """Passes the lines of one replica's log on until its container has ended, or until told to stop.

    No trouble with a log fails a task: after ten broken streams in a row that brought nothing, it warns and
    gives up.
    """

    def __init__(
        self,
        name: str,
        open_log: OpenLog,
        has_ended: Callable[[], bool],
        emit: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(name=f"log of {name}", daemon=True)
        self.complete = False
        self._open = open_log
        self._has_ended = has_ended
        self._emit = emit
        self._warn = warn
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
                continue  # a quiet log is no broken one
            except Exception as e:
                failures = 1 if self._lines > before else failures + 1
                if failures == _ATTEMPTS:
                    self._warn(f"gave up reading the log: {type(e).__name__}: {e}")
                    return
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


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode("utf-8", errors="replace")
