"""A controller at work on an API server, local or real, whose pods a test moves through their phases by hand."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from apiserver_fixtures import Api, RunningServer, running_server
from builders import make_mxjob
from waiting import patience, while_runs

from mxnet_operator.api.conditions import TERMINAL
from mxnet_operator.controller.controller import Controller
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials

JOBS = "/apis/kubeflow.org/v1/namespaces/default/mxjobs"
PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
EVENTS = "/api/v1/namespaces/default/events"
PROGRAM = [sys.executable, "-m", "mxnet_operator.cli.mxnet_operator"]


class RecordingClient(Client):
    """A client that notes what it writes."""

    def __init__(self, credentials: Any, **options: Any) -> None:
        super().__init__(credentials, **options)
        self.writes: list[tuple[str, str]] = []

    async def _write(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        self.writes.append((method, path))
        return await super()._write(method, path, *args, **kwargs)


def submitted(builder: Any) -> dict[str, Any]:
    """A builder's manifest as a user would send it."""
    manifest: dict[str, Any] = builder.manifest()
    del manifest["metadata"]["uid"]
    return manifest


def gang(name: str = "digits") -> dict[str, Any]:
    """The manifest of a job of five pods: a scheduler, two servers, two workers."""
    return submitted(make_mxjob(name).gang())


_CONTROLLER = "the controller"


class ControllerWorld:
    """A namespace of an API server, the user's access to it (`api`), and the controller, which can be restarted."""

    def __init__(self, api: Api, client: RecordingClient, kubeconfig: Path, namespace: str = "default") -> None:
        self.api = api
        self.client = client
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.running: RunningServer | None = None
        self.controller: Controller | None = None
        self._task: asyncio.Task[None] | None = None

    def path(self, path: str) -> str:
        """One of the paths above, in the namespace of this world."""
        return path.replace("/namespaces/default/", f"/namespaces/{self.namespace}/")

    @property
    def writes(self) -> list[tuple[str, str]]:
        return self.client.writes

    async def start(self, **options: Any) -> None:
        if self.namespace != "default":
            options.setdefault("namespaces", [self.namespace])
        self.controller = controller = Controller(self.client, **options)
        self._task = asyncio.create_task(controller.run())
        async with asyncio.timeout(patience()):
            await while_runs(self._task, _CONTROLLER, controller.synced.wait())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            (result,) = await asyncio.gather(self._task, return_exceptions=True)
            assert isinstance(result, asyncio.CancelledError), result
            self._task = None

    async def submit(self, manifest: dict[str, Any], path: str = JOBS) -> dict[str, Any]:
        metadata = {key: value for key, value in manifest["metadata"].items() if key != "namespace"}
        made: dict[str, Any] = (await self.api.post(self.path(path), manifest | {"metadata": metadata})).ok()
        return made

    async def names(self, path: str) -> list[str]:
        return sorted(item["metadata"]["name"] for item in (await self.api.get(self.path(path))).ok()["items"])

    async def eventually(self, path: str, holds: Callable[[Any], Any]) -> dict[str, dict[str, Any]]:
        """The objects at the path by name, once `holds` is true of them: of those that are there, to begin with."""
        until = self.api.until(self.path(path), holds)
        found: dict[str, dict[str, Any]] = await while_runs(self._task, _CONTROLLER, until)
        return found

    async def emptied(self, path: str) -> None:
        """Wait until nothing is left of what is at the path now."""
        found, since = await self.api.listed(self.path(path))
        left = set(found)
        async with asyncio.timeout(patience()), self.api.watch(self.path(path), resourceVersion=since) as events:
            while left:
                event = await events.next()
                if event["type"] == "DELETED":
                    left.discard(event["object"]["metadata"]["name"])

    async def pods(self, count: int) -> dict[str, dict[str, Any]]:
        """The pods, once there are so many: workers last, since with the last of them the others are cleaned up."""
        return dict(sorted((await self.eventually(PODS, lambda pods: len(pods) == count)).items()))

    async def state(self, name: str, state: dict[str, Any]) -> dict[str, Any]:
        """The job, once its state is this one; fails as soon as the job has ended in another."""

        def reached(jobs: dict[str, dict[str, Any]]) -> bool:
            found = jobs.get(name, {}).get("status", {})
            if found.get("state") in TERMINAL and found["state"] != state:
                pytest.fail(f"{name} will never be {state}: {json.dumps(found, indent=1)}")
            return bool(found.get("state") == state)

        return (await self.eventually(JOBS, reached))[name]

    async def event(self, reason: str, count: int = 1, says: str = "") -> dict[str, Any]:
        """The Event with this reason whose message contains `says`, once it has been told `count` times."""

        def matching(events: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
            told = (e for e in events.values() if e["reason"] == reason and e["count"] >= count)
            return [e for e in told if says in e["message"]]

        return matching(await self.eventually(EVENTS, matching))[0]

    async def move(
        self,
        pods: Iterable[str],
        phase: str,
        exit_code: int | None = None,
        message: str = "",
        *,
        missing_ok: bool = False,
    ) -> None:
        """Say what a kubelet would: the pods are in this phase, their containers running or ended with the code.

        With `missing_ok` some may have gone meanwhile.
        """
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        state: dict[str, dict[str, Any]] = {"running": {"startedAt": now}}
        if exit_code is not None:
            ended = {"exitCode": exit_code, "reason": "Error", "message": message, "startedAt": now, "finishedAt": now}
            state = {"terminated": ended}
        container = {"name": "mxnet", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}
        for name in pods:
            body = {"status": {"phase": phase, "containerStatuses": [container]}}
            answer = await self.api.merge(self.path(f"{PODS}/{name}/status"), body)
            if not (missing_ok and answer.code == 404):
                answer.ok()

    async def run_to_success(self, pods: dict[str, dict[str, Any]]) -> None:
        await self.move(pods, "Running")
        await self.move(pods, "Succeeded", exit_code=0)


@asynccontextmanager
async def world(folder: Path, *, start: bool = True, **server_options: Any) -> AsyncIterator[ControllerWorld]:
    async with (
        running_server(folder, **server_options) as running,
        RecordingClient(load_credentials(str(running.kubeconfig))) as client,
    ):
        made = ControllerWorld(running.api, client, running.kubeconfig)
        made.running = running
        try:
            if start:
                await made.start()
            yield made
        finally:
            await made.stop()


class Program:
    """`mxnet-operator run` as a process of its own, with free ports; its log is read as it comes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def says(self, part: str) -> str:
        """The line of the log that has this in its message, and all before it; only lines not yet read count."""
        assert self.process.stderr is not None
        async with asyncio.timeout(patience()):
            while line := await self.process.stderr.readline():
                self.lines.append(json.loads(line))
                message = str(self.lines[-1]["message"])
                if part in message:
                    return message
        raise AssertionError(f"it ended without saying {part!r}: {self.lines}")

    async def end(self) -> int | None:
        """The exit code, once it has ended by itself, and the whole log."""
        async with asyncio.timeout(patience()):
            _, rest = await self.process.communicate()
        self.lines.extend(json.loads(line) for line in rest.splitlines())
        return self.process.returncode


@asynccontextmanager
async def running_program(kubeconfig: Path, *arguments: str, **environment: str) -> AsyncIterator[Program]:
    addresses = ["--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0"]
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        "run",
        "--log-format",
        "json",
        *addresses,
        *arguments,
        env=os.environ | {"KUBECONFIG": str(kubeconfig)} | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
