"""A kubelet's logs without a kubelet: lines that a test puts there, and a follower that waits for more."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any


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

    async def open(
        self,
        namespace: str,
        pod_name: str,
        pod_uid: str,
        container: str,
        *,
        follow: bool,
        tail_lines: int | None,
        **options: Any,
    ) -> AsyncIterator[bytes]:
        self.asked = {"pod": pod_name, "container": container, "follow": follow, "tail_lines": tail_lines} | options
        self.opened.set()
        position = len(self.lines) - tail_lines if tail_lines is not None else 0
        while True:
            self._changed.clear()
            while position < len(self.lines):
                yield f"{self.lines[position]}\n".encode()
                position += 1
            if not follow or self._ended:
                return
            await self._changed.wait()
