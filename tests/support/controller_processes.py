"""Controllers as processes of their own, to be killed: `mxnet-operator run` without election, for one namespace each.

Run as a program this is a process that has loaded everything and forks: a start takes milliseconds instead of seconds.
Its controllers wait for a second between attempts, and from there on exponentially, as always.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any


class ControllerProcesses:
    """Starts them; `kill` ends one at once, as the kernel or a power cut would."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._alive: set[int] = set()
        self._lock = asyncio.Lock()

    async def start(self, kubeconfig: Path, namespace: str) -> int:
        """The id of a new one."""
        async with self._lock:
            self._process.stdin.write(json.dumps([str(kubeconfig), namespace]).encode() + b"\n")
            pid = int(await self._process.stdout.readline())
        self._alive.add(pid)
        return pid

    def kill(self, pid: int) -> None:
        """SIGKILL."""
        self._alive.discard(pid)
        os.kill(pid, signal.SIGKILL)

    def kill_all(self) -> None:
        for pid in tuple(self._alive):
            self.kill(pid)


@contextlib.asynccontextmanager
async def controller_processes() -> AsyncIterator[Any]:
    """No process of theirs is left after the context."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, str(Path(__file__)), stdin=pipe, stdout=pipe)
    processes = ControllerProcesses(process)
    try:
        yield processes
    finally:
        processes.kill_all()
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


def _serve() -> None:
    from mxnet_operator.cli.daemons.controller import Options, run
    from mxnet_operator.cli.server.connection import Target
    from mxnet_operator.kube.loader import loaders

    loaders()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects who is killed
    for line in sys.stdin:
        kubeconfig, namespace = json.loads(line)
        pid = os.fork()
        if pid == 0:
            options = Options(
                target=Target(kubeconfig),
                namespaces=(namespace,),
                workers=8,
                election=None,
                metrics=None,
                health=None,
            )
            asyncio.run(run(options))
            os._exit(1)
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
