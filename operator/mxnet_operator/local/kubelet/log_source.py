"""Logs of the node's containers: the kubelet's LogSource for the API server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mxnet_operator.local.kubelet.log_file import LogFile, rfc3339nano

_BLOCK = 64 * 1024


@dataclass(slots=True)
class ContainerLogs:
    """Logs of one container's runs: the current or last one, and the one before."""

    current: LogFile | None = None
    previous: LogFile | None = None


@dataclass(slots=True)
class Logs:
    """Logs of every container of this node; implements the API server's LogSource."""

    _containers: dict[tuple[str, str], ContainerLogs] = field(default_factory=dict)

    def start(self, pod_uid: str, container: str, log: LogFile) -> LogFile | None:
        """Register the log of a container's new run; returns the log that is no longer accessible."""
        logs = self._containers.setdefault((pod_uid, container), ContainerLogs())
        dropped, logs.previous, logs.current = logs.previous, logs.current, log
        return dropped

    def forget(self, pod_uid: str) -> None:
        """Drop the logs of a pod that no longer exists."""
        for key in [key for key in self._containers if key[0] == pod_uid]:
            del self._containers[key]

    def open(
        self,
        namespace: str,  # noqa: ARG002 - the uid says it all; part of the protocol
        pod_name: str,  # noqa: ARG002
        pod_uid: str,
        container: str,
        *,
        follow: bool,
        tail_lines: int | None,
        since_seconds: int | None,
        since_time: str | None,
        timestamps: bool,
        previous: bool,
        limit_bytes: int | None,
    ) -> AsyncIterator[bytes]:
        """Yield the log in chunks of bytes, with `follow` until the container ends; nothing if it never started."""
        logs = self._containers.get((pod_uid, container), ContainerLogs())
        log = logs.previous if previous else logs.current
        since = _since(since_seconds, since_time)
        return _read(log, follow=follow, tail_lines=tail_lines, since=since, timestamps=timestamps, limit=limit_bytes)


async def _read(
    log: LogFile | None,
    *,
    follow: bool,
    tail_lines: int | None,
    since: bytes,
    timestamps: bool,
    limit: int | None,
) -> AsyncIterator[bytes]:
    if log is None:
        return
    position = log.oldest if tail_lines is None else _tail_position(log, tail_lines)
    left = limit
    line_begins = True
    rest = b""
    while True:
        if position >= log.end:
            if not follow or log.closed:
                return
            await log.changed(position)
            continue
        if position < log.oldest:  # rotated away meanwhile, in the middle of a line
            rest = b""
        position, data = log.read(position)
        *lines, rest = (rest + data).split(b"\n")
        out = bytearray()
        for line in lines:
            time, _, tagged = line.partition(b" ")
            if time < since or len(tagged) < 9:
                continue
            if timestamps and line_begins:
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
        if left == 0:
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


def _since(seconds: int | None, time: str | None) -> bytes:
    if seconds is not None:
        return rfc3339nano(datetime.now(UTC) - timedelta(seconds=seconds)).encode()
    if time is None:
        return b""
    return rfc3339nano(datetime.fromisoformat(time).astimezone(UTC)).encode()
