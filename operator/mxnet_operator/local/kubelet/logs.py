"""Logs of the node's containers, as the API server reads them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mxnet_operator.local.apiserver.logs import LogRequest
from mxnet_operator.local.kubelet.log_file import LogFile, rfc3339nano

_BLOCK = 64 * 1024


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
    since, left = _since(request), request.limit_bytes
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


def _since(request: LogRequest) -> bytes:
    if request.since_seconds is not None:
        return rfc3339nano(datetime.now(UTC) - timedelta(seconds=request.since_seconds)).encode()
    if request.since_time is None:
        return b""
    return rfc3339nano(datetime.fromisoformat(request.since_time).astimezone(UTC)).encode()
