"""A controller at work on an API server, local or real, whose pods a test moves through their phases by hand."""

import asyncio
import contextlib
import json
import os
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from apiserver_fixtures import running_server
from builders import make_mxjob
from waiting import SECONDS

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

    def __init__(self, credentials, **options):
        super().__init__(credentials, **options)
        self.writes = []

    async def create(self, path, *args, **kwargs):
        self.writes.append(("POST", path))
        return await super().create(path, *args, **kwargs)

    async def patch(self, path, *args, **kwargs):
        self.writes.append(("PATCH", path))
        return await super().patch(path, *args, **kwargs)

    async def replace(self, path, *args, **kwargs):
        self.writes.append(("PUT", path))
        return await super().replace(path, *args, **kwargs)

    async def delete(self, path, *args, **kwargs):
        self.writes.append(("DELETE", path))
        return await super().delete(path, *args, **kwargs)


def submitted(builder):
    """A builder's manifest as a user would send it."""
    manifest = builder.manifest()
    del manifest["metadata"]["uid"]
    return manifest


def gang(name="digits"):
    """The manifest of a job of five pods: a scheduler, two servers, two workers."""
    return submitted(make_mxjob(name).gang())


class World:
    """A namespace of an API server, the user's access to it (`api`), and the controller, which can be restarted."""

    def __init__(self, api, client, kubeconfig, namespace="default"):
        self.api = api
        self.client = client
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.running = None
        self.controller = None
        self._task = None

    def path(self, path):
        """One of the paths above, in the namespace of this world."""
        return path.replace("/namespaces/default/", f"/namespaces/{self.namespace}/")

    @property
    def writes(self):
        return self.client.writes

    async def start(self, **options):
        if self.namespace != "default":
            options.setdefault("namespaces", [self.namespace])
        self.controller = Controller(self.client, **options)
        self._task = asyncio.create_task(self.controller.run())
        async with asyncio.timeout(SECONDS):
            await self.controller.synced.wait()

    async def stop(self):
        if self._task is not None:
            self._task.cancel()
            (result,) = await asyncio.gather(self._task, return_exceptions=True)
            assert isinstance(result, asyncio.CancelledError), result
            self._task = None

    async def submit(self, manifest, path=JOBS):
        metadata = {key: value for key, value in manifest["metadata"].items() if key != "namespace"}
        return (await self.api.post(self.path(path), manifest | {"metadata": metadata})).ok()

    async def names(self, path):
        return sorted(item["metadata"]["name"] for item in (await self.api.get(self.path(path))).ok()["items"])

    async def eventually(self, path, holds):
        """The objects at the path by name, once `holds` is true of them: of those that are there, to begin with."""
        found, since = await self._listed(path)
        if holds(found):
            return found
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS), self.api.watch(self.path(path), resourceVersion=since) as events:
                if await events.until(holds, found) is not None:
                    return found
        now, _ = await self._listed(path)
        statuses = {name: each.get("status") for name, each in found.items()}
        missed = sorted(name for name, each in now.items() if found.get(name) != each)
        raise AssertionError(f"the watch ended with {json.dumps(statuses, indent=1)}; it has not told of {missed}")

    async def emptied(self, path):
        """Wait until nothing is left of what is at the path now."""
        found, since = await self._listed(path)
        left = set(found)
        async with asyncio.timeout(SECONDS), self.api.watch(self.path(path), resourceVersion=since) as events:
            while left:
                event = await events.next()
                if event["type"] == "DELETED":
                    left.discard(event["object"]["metadata"]["name"])

    async def _listed(self, path):
        """The objects at the path by name, and the version from which on a watch tells what follows."""
        listed = (await self.api.get(self.path(path))).ok()
        return {item["metadata"]["name"]: item for item in listed["items"]}, listed["metadata"]["resourceVersion"]

    async def pods(self, count):
        """The pods, once there are so many: workers last, since with the last of them the others are cleaned up."""
        return dict(sorted((await self.eventually(PODS, lambda pods: len(pods) == count)).items()))

    async def state(self, name, state):
        """The job, once its state is this one."""
        jobs = await self.eventually(JOBS, lambda jobs: jobs.get(name, {}).get("status", {}).get("state") == state)
        return jobs[name]

    async def event(self, reason, count=1, says=""):
        """The Event with this reason whose message contains `says`, once it has been told `count` times."""

        def matching(events):
            told = (e for e in events.values() if e["reason"] == reason and e["count"] >= count)
            return [e for e in told if says in e["message"]]

        return matching(await self.eventually(EVENTS, matching))[0]

    async def move(self, pods, phase, exit_code=None, message=""):
        """Say what a kubelet would: the pods are in this phase, their containers running or ended with the code."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        state = {"running": {"startedAt": now}}
        if exit_code is not None:
            ended = {"exitCode": exit_code, "reason": "Error", "message": message, "startedAt": now, "finishedAt": now}
            state = {"terminated": ended}
        container = {"name": "mxnet", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}
        for name in pods:
            body = {"status": {"phase": phase, "containerStatuses": [container]}}
            (await self.api.merge(self.path(f"{PODS}/{name}/status"), body)).ok()

    async def run_to_success(self, pods):
        await self.move(pods, "Running")
        await self.move(pods, "Succeeded", exit_code=0)


@asynccontextmanager
async def world(folder, *, start=True, **server_options):
    async with (
        running_server(folder, **server_options) as running,
        RecordingClient(load_credentials(str(running.kubeconfig))) as client,
    ):
        made = World(running.api, client, running.kubeconfig)
        made.running = running
        try:
            if start:
                await made.start()
            yield made
        finally:
            await made.stop()


class Program:
    """`mxnet-operator run` as a process of its own, with free ports; its log is read as it comes."""

    def __init__(self, process):
        self.process = process
        self.lines = []

    async def says(self, part):
        """The line of the log that has this in its message, and all before it; only lines not yet read count."""
        async with asyncio.timeout(SECONDS):
            while line := await self.process.stderr.readline():
                self.lines.append(json.loads(line))
                if part in self.lines[-1]["message"]:
                    return self.lines[-1]["message"]
        raise AssertionError(f"it ended without saying {part!r}: {self.lines}")

    async def end(self):
        """The exit code, once it has ended by itself, and the whole log."""
        async with asyncio.timeout(SECONDS):
            _, rest = await self.process.communicate()
        self.lines.extend(json.loads(line) for line in rest.splitlines())
        return self.process.returncode


@asynccontextmanager
async def running_program(kubeconfig, *arguments, **environment):
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
