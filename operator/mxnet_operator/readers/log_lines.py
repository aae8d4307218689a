"""Readers of a replica's log: every line once, over any number of broken connections."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?")
_LONGEST_LINE: Final = 64 * 1024

_Key = tuple[bytes, bytes]


class LineSplitter:
    """Splitter of a byte stream's chunks into lines, without their line ends.

    A line longer than 64 KiB comes in pieces: a log without newlines must not fill the memory. `exact` keeps the ends:
    all that is yielded, and the rest, is the stream.
    """

    def __init__(self, *, exact: bool = False) -> None:
        self.rest = b""
        self._end = b"\n" if exact else b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that the chunk completes."""
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        for line in lines:
            yield line + self._end
        while len(self.rest) > _LONGEST_LINE:
            yield self.rest[:_LONGEST_LINE]
            self.rest = self.rest[_LONGEST_LINE:]


class LogCursor:
    """Position in one log, by the timestamps that the kubelet puts before each line.

    A stream can only be resumed from a whole second (`sinceTime`), so the lines of that second which were
    seen before come again; they are dropped by their timestamp, and by count where several lines share one.
    """

    def __init__(self, state: Sequence[Any] | None = None, *, exact: bool = False) -> None:
        """Begin a log, or continue from the `state` of another cursor.

        `exact` keeps carriage returns, and undecodable bytes as Python's `surrogateescape` has them.
        """
        self.exact = exact
        self.since: str | None = None
        self._last: _Key = (b"", b"")
        self._seen_at_last = 0
        if state is not None:
            self.since, nanoseconds, self._seen_at_last = state
            self._last = (str(self.since)[:19].encode(), str(nanoseconds).encode())
        self._to_skip = 0
        self._resuming = False

    def state(self) -> list[Any]:
        """Return the position as JSON from which another cursor continues."""
        return [self.since, self._last[1].decode(), self._seen_at_last]

    @property
    def moment(self) -> float:
        """Time of the last line, in seconds since the epoch by the node's clock; 0 before the first."""
        return datetime.fromisoformat(self.since).timestamp() + int(self._last[1]) / 1e9 if self.since else 0.0

    def reconnect(self) -> str | None:
        """Begin another stream; return the RFC 3339 time to request it from, None for the log's beginning."""
        self._resuming = self.since is not None
        self._to_skip = self._seen_at_last
        return self.since

    def take(self, line: bytes) -> str | None:
        """Return the text of a stamped line, or None for a repeated one; undecodable bytes are U+FFFD if not exact."""
        stamp = _STAMP.match(line)
        if stamp is None:
            return None if self._resuming else self._text(line)
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
        return self._text(line[stamp.end() :])

    def _text(self, line: bytes) -> str:
        if self.exact:
            return line.decode("utf-8", "surrogateescape")
        return line.rstrip(b"\r").decode("utf-8", "replace")
