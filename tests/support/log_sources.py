"""A kubelet's logs without a kubelet: lines that a test puts there, and a follower that waits for more."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from mxnet_operator.local.apiserver.logs import LogRequest


class ScriptedLogs:
    """The log of every container, and what was asked of it last."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        self.asked: dict[str, Any] = {}
        self.opened = asyncio.Event()
        self._changed = asyncio.Event()
        self._ended = False

    def say(self, line: str) -> None:
        self.lines.append(line)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def open(self, pod_uid: str, request: LogRequest) -> AsyncIterator[bytes]:
        self.asked = asdict(request)
        self.opened.set()
        position = 0 if request.tail_lines is None else max(len(self.lines) - request.tail_lines, 0)
        while True:
            self._changed.clear()
            while position < len(self.lines):
                yield f"{self.lines[position]}\n".encode()
                position += 1
            if not request.follow or self._ended:
                return
            await self._changed.wait()
