"""A kubelet's logs without a kubelet: lines that a test puts there, and a follower that waits for more."""

import asyncio


class ScriptedLogs:
    """The log of every container, and what was asked of it last."""

    def __init__(self, *lines):
        self.lines = list(lines)
        self.asked = {}
        self.opened = asyncio.Event()
        self._changed = asyncio.Event()
        self._ended = False

    def say(self, line):
        self.lines.append(line)
        self._changed.set()

    def end(self):
        self._ended = True
        self._changed.set()

    async def open(self, namespace, pod_name, pod_uid, container, *, follow, tail_lines, **options):
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
