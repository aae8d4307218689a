"""Logs of the node's containers: files of bounded size in the CRI format, and what the API server reads of them."""

import asyncio
import contextlib
import logging
import os
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from mxnet_operator.local.apiserver.logs import LogRequest
from mxnet_operator.local.waiting import Changes

_LOG = logging.getLogger(__name__)

LINE_LIMIT = 16 * 1024
"""Bytes; a longer line is written in parts marked P, the last one F (containerd's max_container_log_line_size)."""
FILE_BYTES = 16 * 2**20
"""Size at which a log file is rotated."""
TAIL_BYTES = 2048
TAIL_LINES = 80
_BLOCK = 64 * 1024


def _rfc3339nano(now: datetime | None = None) -> str:
    """Format a time (UTC, now by default) as in the CRI log format."""
    return (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


class LogFile:
    """Rotated log of a container's output; readers follow it by position.

    A position counts the bytes written since the container started. When the file has grown to `limit` bytes it
    becomes the older of two and the former older one is dropped, so the disk holds 2 x `limit` at most. A disk that
    is full loses lines; the container never notices.
    """

    def __init__(self, path: Path, limit: int = FILE_BYTES) -> None:
        self._path = path
        self._older = path.with_name(path.name + ".1")
        self._limit = limit
        self._start = 0
        self._older_start = 0
        self._end = 0
        self._partial = bytearray()
        self._failed = False
        self._tail: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._fd: int | None = None
        self._changes = Changes()
        self.closed = False

    @property
    def end(self) -> int:
        """Position after the last byte."""
        return self._end

    @property
    def oldest(self) -> int:
        """First position that can still be read."""
        return self._older_start

    def append(self, data: bytes) -> None:
        """Append output; whole lines are written at once, the rest once the line is complete."""
        self._partial += data
        *lines, rest = bytes(self._partial).split(b"\n")
        now = _rfc3339nano().encode()
        out = bytearray()
        for line in lines:
            self._tail.append(line[-TAIL_BYTES:] + b"\n")
            _format(out, now, line, b"F")
        while len(rest) >= LINE_LIMIT:
            _format(out, now, rest[:LINE_LIMIT], b"P")
            self._tail.append(rest[:LINE_LIMIT][-TAIL_BYTES:])
            rest = rest[LINE_LIMIT:]
        self._partial[:] = rest
        if out:
            self._write(bytes(out))

    def close(self) -> None:
        """Write the rest of the last line and close the log."""
        if self._partial:
            out = bytearray()
            _format(out, _rfc3339nano().encode(), bytes(self._partial), b"P")
            self._tail.append(bytes(self._partial[-TAIL_BYTES:]))
            self._partial.clear()
            self._write(bytes(out))
        self._close()
        self.closed = True
        self._changes.notify()

    def tail(self) -> str:
        """Return the end of the log as for FallbackToLogsOnError: 80 lines or 2048 bytes at most."""
        return b"".join(self._tail)[-TAIL_BYTES:].decode("utf-8", "replace")

    def read(self, position: int, size: int = 256 * 1024) -> tuple[int, bytes]:
        """Read bytes from `position` on; returns the position after them, and skips bytes that are rotated away."""
        position = max(position, self.oldest)
        older = position < self._start
        path, start, end = (
            (self._older, self._older_start, self._start) if older else (self._path, self._start, self._end)
        )
        if position >= end:
            return position, b""
        try:
            with path.open("rb") as file:
                file.seek(position - start)
                data = file.read(min(size, end - position))
        except OSError:
            data = b""
        return (position + len(data), data) if data else (end, b"")

    async def changed(self, position: int) -> None:
        """Wait until there is output after `position`, or the log is closed."""
        while not self.closed and position >= self._end:
            await self._changes.wait()

    def _write(self, data: bytes) -> None:
        try:
            if self._fd is not None and self._end - self._start >= self._limit:
                self._rotate()
            if self._fd is None:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            if os.write(self._fd, data) == len(data):
                self._end += len(data)
                self._changes.notify()
                return
        except OSError as error:
            if not self._failed:
                _LOG.warning("log %s can't be written: %s", self._path, error)
            self._failed = True
        if self._fd is not None:
            with contextlib.suppress(OSError):  # no half a line stays
                os.ftruncate(self._fd, self._end - self._start)
            self._close()

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _rotate(self) -> None:
        self._path.replace(self._older)
        self._close()
        self._older_start, self._start = self._start, self._end


def _format(out: bytearray, now: bytes, line: bytes, tag: bytes) -> None:
    while len(line) > LINE_LIMIT:
        out += now + b" stdout P " + line[:LINE_LIMIT] + b"\n"
        line = line[LINE_LIMIT:]
    out += now + b" stdout " + tag + b" " + line + b"\n"


@dataclass(slots=True)
class Logs:
    """Logs of every container of this node; implements the API server's LogSource."""

    _containers: dict[str, dict[str, LogFile]] = field(default_factory=dict)

    def start(self, pod_uid: str, container: str, log: LogFile) -> None:
        self._containers.setdefault(pod_uid, {})[container] = log

    def forget(self, pod_uid: str) -> None:
        self._containers.pop(pod_uid, None)

    def open(self, pod_uid: str, request: LogRequest) -> AsyncIterator[bytes]:
        """Yield the log in chunks of bytes, with `follow` until the container ends; nothing if it never started."""
        return _read(self._containers.get(pod_uid, {}).get(request.container), request)


async def _read(log: LogFile | None, request: LogRequest) -> AsyncIterator[bytes]:
    if log is None:
        return
    since, left = (_rfc3339nano(request.since).encode() if request.since else b""), request.limit_bytes
    position = log.oldest if request.tail_lines is None else _tail_position(log, request.tail_lines)
    line_begins = True
    rest = b""
    while True:
        ended = position >= log.end
        if ended and request.follow and not log.closed:
            await log.changed(position)
            continue
        if position < log.oldest:  # dropped meanwhile, in the middle of a line
            rest = b""
        position, data = log.read(position)
        *lines, rest = (rest + data).split(b"\n")
        out = bytearray()
        for each in lines:
            time, _, tagged = each.partition(b" ")
            if time < since or len(tagged) < 9:
                continue
            if request.timestamps and line_begins:
                out += time + b" "
            out += tagged[9:]  # after "stdout F "
            line_begins = tagged[7:8] == b"F"
            if line_begins:
                out += b"\n"
        if left is not None:
            del out[left:]
            left -= len(out)
        if out:
            yield bytes(out)
        if ended or left == 0:
            return
        await asyncio.sleep(0)  # a large log is read in turn with everything else


def _tail_position(log: LogFile, lines: int) -> int:
    position, found = log.end, 0
    if lines == 0:
        return position
    while position > log.oldest:
        begin = max(position - _BLOCK, log.oldest)
        data = _range(log, begin, position)
        at = len(data)
        while (at := data.rfind(b"\n", 0, at)) >= 0:
            found += 1
            if found == lines + 1:
                return begin + at + 1
        position = begin
    return log.oldest


def _range(log: LogFile, begin: int, end: int) -> bytes:
    pieces = []
    while begin < end:
        begin, data = log.read(begin, end - begin)
        pieces.append(data)
    return b"".join(pieces)
