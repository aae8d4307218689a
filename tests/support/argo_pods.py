"""A node that runs Argo's own pods, and no others, for tests on a real API server; needs root.

What a kubelet does for such a pod: the ServiceAccount's token, Secrets, emptyDirs, init container, then the others side
by side, exit codes and termination messages, logs, deletion with its grace period, activeDeadlineSeconds, and `exec`,
by which the controller stops a step. No images, no cgroups, no probes (`docs/facts/argo.md`): argoexec is a program on
this machine, and of any other image the containers have the `mxjob` of this checkout, with this Python.
"""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from aiohttp import web
from apiserver_objects import binding
from kubernetes_kubelet import keep_lease

import mxnet_operator
from mxnet_operator.kube.answers import AnyObject
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.kube.resources import CONFIGMAPS, NODES, PODS, SECRETS
from mxnet_operator.local.kubelet.environment import expand

NODE = "argo"
SCHEDULER_NAME = "argo-test-runner"
"""Argo's pods ask for this scheduler, so that no other places them."""
_USER = 8737
_CONTAINER_PROGRAM = Path(__file__).with_name("argo_container.py")
ARGOEXEC_IMAGE = "argoexec:test"
_PACKAGES = Path(mxnet_operator.__file__).parents[1]
_PYTHON = ("/usr", "/lib", "/lib64", sys.base_prefix, sys.prefix, str(_PACKAGES))
"""What `mxjob` needs in its root: this Python, the libraries of this machine, and the package."""
_MXJOB = f"#!{sys.executable}\nfrom mxnet_operator.cli.mxjob import main\nmain()\n"


def why_not() -> str:
    """Why this process can't run Argo's pods; empty where it can."""
    if os.geteuid() != 0:
        return "Argo's pods need root here: chroot and namespaces of mounts and process ids"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True, check=False
    )
    return f"namespaces can't be made here, even as root: {tried.stderr}" if tried.returncode else ""


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ArgoPods:
    """The node, until its context ends; then no process of it is left."""

    def __init__(self, client: Any, server: Any, argoexec: Path, folder: Path) -> None:
        """`server` is the API server as the pods are to find it; `argoexec` the program that is their image."""
        self._client = client
        self._server = server
        self._argoexec = argoexec
        self._folder = folder
        self._pods: dict[str, _Pod] = {}
        self.servers: dict[str, str] = {}
        """By the name of a workflow, the URL under which its pods find the API, where it is another."""

    async def __aenter__(self) -> Self:
        self._web = web.AppRunner(self._kubelet_api())
        await self._web.setup()
        site = web.TCPSite(self._web, "127.0.0.1", 0, ssl_context=self._server.kubelet_context())
        await site.start()
        port = self._web.addresses[0][1]
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}],
        }
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {"unschedulable": True}}
        await self._client.create(NODES.path(), node)
        await self._client.patch(NODES.path(None, NODE, "status"), {"status": status})
        self._own = [asyncio.create_task(each) for each in (self._watch(), keep_lease(self._client, NODE))]
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._own, *(pod.task for pod in self._pods.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._web.cleanup()
        await self._client.delete(NODES.path(None, NODE))

    def process(self, pod_name: str, container: str = "main") -> int:
        """The process id of a container's process 1."""
        (found,) = self._folder.glob(f"{pod_name}-*/{container}.pid")
        return int(found.read_text())

    def log(self, pod_name: str, container: str = "main") -> str:
        """What a container has written so far."""
        return "".join(path.read_text() for path in self._folder.glob(f"{pod_name}-*/{container}.log"))

    async def lose(self, pod_name: str) -> None:
        """Kill a pod's processes and report nothing more of it, as a node that has lost its power."""
        (lost,) = [pod for pod in self._pods.values() if pod.name == pod_name]
        lost.task.cancel()
        await asyncio.wait({lost.task})

    async def _watch(self) -> None:
        query = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
        while True:
            with contextlib.suppress(ApiUnavailable, ApiError):
                async for line in self._client.watch(PODS.path(), query):
                    event = json.loads(line)
                    if event["type"] in {"ADDED", "MODIFIED"}:
                        await self._see(event["object"])

    async def _see(self, manifest: dict[str, Any]) -> None:
        if manifest["spec"].get("schedulerName") != SCHEDULER_NAME:
            return
        uid = manifest["metadata"]["uid"]
        if uid not in self._pods:
            folder = self._folder / f"{manifest['metadata']['name']}-{uid}"
            workflow = manifest["metadata"]["labels"]["workflows.argoproj.io/workflow"]
            url = self.servers.get(workflow, self._server.url)
            self._pods[uid] = _Pod(manifest, self._client, url, self._argoexec, folder)
        if "deletionTimestamp" in manifest["metadata"]:
            self._pods[uid].deletion.set()

    def _kubelet_api(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/exec/{namespace}/{pod}/{container}", self._exec)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._log)
        return app

    async def _log(self, request: web.Request) -> web.StreamResponse:
        """What a container has written; with `follow`, until its pod is over."""
        (path,) = self._folder.glob(f"{request.match_info['pod']}-*/{request.match_info['container']}.log")
        response = web.StreamResponse()
        await response.prepare(request)
        with path.open("rb") as log:
            while True:
                over = not path.exists()
                while chunk := log.read(65536):
                    await response.write(chunk)
                if over or request.query.get("follow") != "true":
                    return response
                await asyncio.sleep(0.1)

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        """Runs the command beside the container, as `kubectl exec` would; nobody reads its output."""
        pid = self.process(request.match_info["pod"], request.match_info["container"])
        command = request.query.getall("command")
        program = command[0] if command[0].startswith("/") else "/var/run/argo/argoexec"
        enter = ["nsenter", "--target", str(pid), "--mount", "--pid", "--root", "--wd"]
        process = await asyncio.create_subprocess_exec(
            *enter, "--setuid", str(_USER), "--setgid", str(_USER), program, *command[1:]
        )
        await process.wait()
        return web.Response()


class _Pod:
    """One pod, from its binding to its end; `task` is its life."""

    def __init__(self, manifest: dict[str, Any], client: Any, url: str, argoexec: Path, folder: Path) -> None:
        self.deletion = asyncio.Event()
        self._manifest = manifest
        self._client = client
        self._url = url
        self._argoexec = argoexec
        self._folder = folder
        meta = manifest["metadata"]
        self.name = meta["name"]
        self._path = PODS.path(meta["namespace"], meta["name"])
        self._processes: list[asyncio.subprocess.Process] = []
        self._message = ""
        self._started = now()
        self._states: dict[str, Any] = {}
        self._reporting = asyncio.Lock()
        self.task = asyncio.create_task(self._live())

    async def _live(self) -> None:
        meta = self._manifest["metadata"]
        self._folder.mkdir(parents=True)
        try:
            if not self._manifest["spec"].get("nodeName"):
                bound = binding(meta["name"], NODE)
                await self._client.create(f"{self._path}/binding", bound, shape=AnyObject)
            await self._run()
            if self.deletion.is_set():
                await self._client.delete(self._path, {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}})
        except ApiError as error:
            if error.code != 404:
                raise
        finally:
            for process in self._processes:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _run(self) -> None:
        volumes = await self._volumes()
        for container in self._manifest["spec"].get("initContainers", []):
            if await self._contain(container, volumes, "Pending") != 0:
                await self._report("Failed")
                return
        together = [self._contain(each, volumes, "Running") for each in self._manifest["spec"]["containers"]]
        codes = await asyncio.gather(*together)
        await self._report("Failed" if any(codes) else "Succeeded")

    async def _contain(self, container: dict[str, Any], volumes: dict[str, Path], phase: str) -> int:
        """Run one container; its exit code. Deletion and the pod's deadline end it."""
        name, started = container["name"], now()
        log = self._folder / f"{name}.termination"
        log.touch()
        log.chmod(0o666)
        mounts = [*self._image(container), *self._mounts(container, volumes)]
        mounts.append({"source": str(log), "target": "/dev/termination-log"})
        environment = self._environment(container)
        command = [expand(each, environment) for each in (*container["command"], *container.get("args", []))]
        description = {
            "root": str(self._folder / f"{name}.root"),
            "mounts": mounts,
            "read_only": container.get("securityContext", {}).get("readOnlyRootFilesystem", False),
            "user": _USER,
            "command": ["/bin/argoexec" if command[0] == "argoexec" else command[0], *command[1:]],
            "env": environment,
            "pid_file": str(self._folder / f"{name}.pid"),
        }
        with (self._folder / f"{name}.log").open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(_CONTAINER_PROGRAM), json.dumps(description), stdout=output, stderr=output
            )
        self._processes.append(process)
        self._states[name] = {"running": {"startedAt": started}}
        await self._report(phase)
        code = await self._outlive(process)
        times = {"startedAt": started, "finishedAt": now()}
        reason, message = "Error" if code else "Completed", log.read_text(errors="replace")[:4096]
        self._states[name] = {"terminated": {"exitCode": code, "reason": reason, "message": message, **times}}
        if phase == "Running" and any("running" in state for state in self._states.values()):
            await self._report(phase)
        return code

    def _image(self, container: dict[str, Any]) -> list[dict[str, Any]]:
        """The mounts that stand for a container's image."""
        if container["image"] == ARGOEXEC_IMAGE:
            return [{"source": str(self._argoexec), "target": "/bin/argoexec", "read_only": True}]
        program = self._folder / "mxjob"
        program.write_text(_MXJOB)
        program.chmod(0o755)
        mounts = {str(program): "/bin/mxjob", **{folder: folder for folder in _PYTHON}}
        return [{"source": source, "target": target, "read_only": True} for source, target in mounts.items()]

    def _mounts(self, container: dict[str, Any], volumes: dict[str, Path]) -> list[dict[str, Any]]:
        mounts = []
        for mount in container.get("volumeMounts", []):
            source = volumes[mount["name"]] / mount.get("subPath", "")
            if not source.exists():
                source.mkdir()
                source.chmod(0o777)
            mounts.append({"source": str(source), "target": mount["mountPath"], "read_only": mount.get("readOnly")})
        return sorted(mounts, key=lambda each: each["target"])  # what is within another comes after it

    async def _outlive(self, process: asyncio.subprocess.Process) -> int:
        ending = asyncio.create_task(process.wait())
        deleting = asyncio.create_task(self.deletion.wait())
        deadline = self._manifest["spec"].get("activeDeadlineSeconds")
        try:
            await asyncio.wait({ending, deleting}, timeout=deadline, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                if not deleting.done():
                    self._message = "Pod was active on the node longer than the specified deadline"
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                await asyncio.wait({ending}, timeout=self._manifest["spec"].get("terminationGracePeriodSeconds", 30))
                if not ending.done():
                    process.kill()
            return await ending
        finally:
            deleting.cancel()

    def _environment(self, container: dict[str, Any]) -> dict[str, str]:
        meta = self._manifest["metadata"]
        fields = {"metadata.name": meta["name"], "metadata.uid": meta["uid"], "metadata.namespace": meta["namespace"]}
        address, _, port = self._url.removeprefix("https://").partition(":")
        environment = {"PATH": "/bin", "KUBERNETES_SERVICE_HOST": address, "KUBERNETES_SERVICE_PORT": port}
        if container["image"] != ARGOEXEC_IMAGE:
            environment["PYTHONPATH"] = str(_PACKAGES)
        for each in container.get("env", []):
            reference = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            environment[each["name"]] = fields[reference] if reference else expand(each.get("value", ""), environment)
        return environment

    async def _volumes(self) -> dict[str, Path]:
        folders = {}
        for volume in self._manifest["spec"].get("volumes", []):
            folder = folders[volume["name"]] = self._folder / "volumes" / volume["name"]
            folder.mkdir(parents=True)
            folder.chmod(0o777)
            for source in volume.get("projected", {}).get("sources", []):
                for name, text in (await self._projected(source)).items():
                    (folder / name).write_text(text)
            if secret := volume.get("secret"):
                path = SECRETS.path(self._manifest["metadata"]["namespace"], secret["secretName"])
                for name, data in (await self._client.get(path))["data"].items():
                    (folder / name).write_bytes(base64.b64decode(data))
        return folders

    async def _projected(self, source: Any) -> dict[str, str]:
        meta = self._manifest["metadata"]
        if token := source.get("serviceAccountToken"):
            account = self._manifest["spec"]["serviceAccountName"]
            path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token"
            bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
            spec = {"expirationSeconds": 3600, "boundObjectRef": bound}
            answer = await self._client.create(
                path,
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
                shape=AnyObject,
            )
            return {token["path"]: answer["status"]["token"]}
        if config_map := source.get("configMap"):
            found = await self._client.get(CONFIGMAPS.path(meta["namespace"], config_map["name"]))
            return {item["path"]: found["data"][item["key"]] for item in config_map["items"]}
        return {item["path"]: meta["namespace"] for item in source.get("downwardAPI", {}).get("items", [])}

    async def _report(self, phase: str) -> None:
        async with self._reporting:
            await self._client.patch(f"{self._path}/status", {"status": self._status(phase)})

    def _status(self, phase: str) -> dict[str, Any]:
        def statuses(containers: list[dict[str, Any]]) -> list[dict[str, Any]]:
            waiting = {"waiting": {"reason": "PodInitializing"}}
            return [
                {
                    "name": each["name"],
                    "image": each["image"],
                    "imageID": "",
                    "ready": "running" in self._states.get(each["name"], ()),
                    "restartCount": 0,
                    "state": self._states.get(each["name"], waiting),
                }
                for each in containers
            ]

        spec = self._manifest["spec"]
        status = {
            "phase": phase,
            "startTime": self._started,
            "podIP": "127.0.0.1",
            "initContainerStatuses": statuses(spec.get("initContainers", [])),
            "containerStatuses": statuses(spec["containers"]),
        }
        if self._message:
            status |= {"reason": "DeadlineExceeded", "message": self._message}
        return status
