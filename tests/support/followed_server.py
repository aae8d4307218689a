"""An API server with one job whose worker writes a log, and what goes wrong with the server meanwhile."""

import asyncio
import contextlib
import io
import json
import ssl
import tarfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trustme
from aiohttp import web
from kubeconfigs import write_kubeconfig
from scripted_api import make_status
from served_requests import served_requests

JOBS = "/apis/kubeflow.org/v1/namespaces/default/mxjobs"
PODS, ALL_PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/pods", "/api/v1/nodes"
JOB_UID, POD_UID = "of-the-job", "of-the-pod"
BOOKMARK_SECONDS = 60.0
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_LABELS = {
    "training.kubeflow.org/job-name": "digits",
    "training.kubeflow.org/replica-type": "worker",
    "training.kubeflow.org/replica-index": "0",
}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong with the server, and when.

    Args:
        at: Seconds after the job's creation.
        seconds: For how long.
        reset: Whether all connections break at first.
        away: Whether no connection is taken.
        frozen: Whether older connections bring nothing more; those of more than a minute break in the end.
        late: Seconds that answers take.
        answer: Code, headers and body with which all requests are answered.
        token: The token from then on.
        expired: Whether all watches end with 410.
        empty: Whether the job is gone afterwards.
        cleaned: Whether the job's end deletes its pods (`cleanPodPolicy: All`).
        authority: Whether the server speaks TLS, and another authority vouches for it from then on.
    """

    at: float
    seconds: float = 0.0
    reset: bool = False
    away: bool = False
    frozen: bool = False
    late: float = 0.0
    answer: tuple[int, dict[str, str], str] | None = None
    token: str = ""
    expired: bool = False
    empty: bool = False
    cleaned: bool = False
    authority: bool = False


class FollowedServer:
    """The job `digits` from its creation on, with a line of its worker's log at each of `lines`, in seconds."""

    def __init__(self, fault: Fault, lines: list[float], end: float) -> None:
        self.fault, self.lines, self.end = fault, lines, end
        self.manifest: dict[str, Any] | None = None
        self.kubeconfig = Path()
        self.refused = 0
        """Number of requests that met the fault."""
        self.model = bytes(100_000)
        """What the worker has written."""
        self.heartbeats: list[float] = []
        """When a node has reported, in seconds after the job's creation."""
        self._created = 0.0
        self._opened: dict[Any, float] = {}

    @contextlib.asynccontextmanager
    async def served(self, folder: Path) -> AsyncIterator[None]:
        """Serve, with a kubeconfig in the folder."""
        self.kubeconfig = folder / "kubeconfig"
        self._identity = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if self.fault.authority else None
        async with served_requests(self._handle, self._identity) as port:
            self._url = f"http{'s' if self.fault.authority else ''}://127.0.0.1:{port}"
            self._vouch("first")
            yield

    def _vouch(self, token: str) -> None:
        """Write the kubeconfig with a token, and with a new authority of the server's certificate if it has one."""
        file = None
        if self._identity is not None:
            authority, file = trustme.CA(), self.kubeconfig.with_name("ca.pem")
            authority.issue_cert("127.0.0.1").configure_cert(self._identity)
            authority.cert_pem.write_to_path(file)
        write_kubeconfig(self.kubeconfig, self._url, token, file)

    @property
    def now(self) -> float:
        """Seconds since the job's creation; 0 before it."""
        if self.manifest is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._created

    @property
    def text(self) -> list[str]:
        """The lines of the log."""
        return [f"line {number}" for number in range(len(self.lines))]

    async def create(self, manifest: dict[str, Any]) -> None:
        """Create the job; its pod runs at once."""
        self._created = asyncio.get_running_loop().time()
        self.manifest = manifest
        self._timeline = asyncio.create_task(self._run())

    @property
    def has_ended(self) -> bool:
        return self.now >= self.end

    @property
    def _is_faulty(self) -> bool:
        return self.fault.at <= self.now < self.fault.at + self.fault.seconds

    @property
    def _is_gone(self) -> bool:
        return self.manifest is None or (self.fault.empty and self.now >= self.fault.at)

    @property
    def is_pod_gone(self) -> bool:
        return self.manifest is not None and self._is_absent(PODS)

    def _is_absent(self, collection: str) -> bool:
        return self._is_gone or (collection == PODS and self.fault.cleaned and self.has_ended)

    async def _run(self) -> None:
        await self._until(self.fault.at)
        if self.fault.token or self.fault.authority:
            self._vouch(self.fault.token or "first")
        if self.fault.reset:
            self._break(list(self._opened))
        await self._until(self.fault.at + self.fault.seconds)
        if self.fault.frozen and self.fault.seconds > 60:
            self._break([each for each, opened in self._opened.items() if opened < self.fault.at])

    async def _until(self, moment: float) -> None:
        await asyncio.sleep(max(moment - self.now, 0))

    def _break(self, connections: list[Any]) -> None:
        for each in connections:
            each.abort()

    async def _thaw(self, request: web.Request) -> None:
        """Wait while the connection is frozen."""
        if self.fault.frozen and self._opened.get(request.transport, 0.0) < self.fault.at and self._is_faulty:
            self.refused += 1
            await self._until(self.fault.at + self.fault.seconds)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        self._opened.setdefault(transport, self.now)
        await self._thaw(request)
        if self._is_faulty:
            self.refused += 1
            if self.fault.away:
                transport.abort()
                return web.Response()
            if self.fault.answer is not None:
                code, headers, body = self.fault.answer
                return web.Response(status=code, headers=headers, text=body)
            await asyncio.sleep(self.fault.late)
        token = self.fault.token if self.fault.token and self.now >= self.fault.at else "first"
        if request.headers.get("Authorization") != f"Bearer {token}":
            self.refused += 1
            return web.json_response(make_status(401, "Unauthorized"), status=401)
        return await self._answer(request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if request.method == "POST" and path == JOBS:
            await self.create(await request.json())
            return web.json_response(self._job(), status=201)
        for collection, thing in ((JOBS, self._job()), (PODS, self._pod())):
            if path in {collection, ALL_PODS if collection == PODS else ""}:
                selected = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
                if selected and selected != thing["metadata"]["name"]:
                    return self._listed([])
                if request.query.get("watch") == "true":
                    return await self._watch(request, collection)
                return self._listed([] if self._is_absent(collection) else [thing])
            if path == f"{collection}/{thing['metadata']['name']}" and not self._is_absent(collection):
                return web.json_response(thing)
        if path == f"{PODS}/digits-worker-0/log" and not self._is_absent(PODS):
            return await self._log(request)
        if path == f"{PODS}/digits-worker-0/exec":
            return await self._exec(request)
        if path.endswith("/events"):
            return self._listed([])
        if path.startswith(NODES) and request.method in {"POST", "PATCH"}:
            self.heartbeats.append(self.now)
            return web.json_response({"apiVersion": "v1", "kind": "Node", "metadata": self._named("local")})
        return web.json_response(make_status(404, "NotFound", name=path), status=404)

    def _named(self, name: str) -> dict[str, Any]:
        return {"name": name, "uid": f"of-{name}", "resourceVersion": self._version}

    def _listed(self, items: list[dict[str, Any]]) -> web.Response:
        return web.json_response({"metadata": {"resourceVersion": self._version}, "items": items})

    @property
    def _version(self) -> str:
        return "2" if self.has_ended else "1"

    def _job(self) -> dict[str, Any]:
        given = self.manifest or {"metadata": {"name": "digits"}}
        state = "Succeeded" if self.has_ended else "Running"
        condition = {"type": state, "status": "True", "reason": state, "message": f"it {state}"}
        metadata = {
            **given["metadata"],
            "namespace": "default",
            "uid": JOB_UID,
            "resourceVersion": self._version,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MXJob",
            **given,
            "metadata": metadata,
            "status": {"state": state, "conditions": [condition]},
        }

    def _pod(self) -> dict[str, Any]:
        state: dict[str, Any] = {"terminated": {"exitCode": 0}} if self.has_ended else {"running": {}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "digits-worker-0",
                "namespace": "default",
                "uid": POD_UID,
                "resourceVersion": self._version,
                "labels": _LABELS,
                "ownerReferences": [{"uid": JOB_UID, "controller": True}],
            },
            "spec": {"containers": [{"name": "mxnet", "image": "a:1"}]},
            "status": {
                "phase": "Succeeded" if self.has_ended else "Running",
                "containerStatuses": [{"name": "mxnet", "state": state}],
            },
        }

    async def _watch(self, request: web.Request, collection: str) -> web.StreamResponse:
        if "sendInitialEvents" in request.query:
            return web.json_response(make_status(422, "Invalid"), status=422)
        response = web.StreamResponse()
        await response.prepare(request)
        if self._is_gone:
            await self._send(request, response, "ERROR", make_status(410, "Expired"))
            return response
        until = self.now + float(request.query.get("timeoutSeconds", "300"))
        bookmarks = request.query.get("allowWatchBookmarks") == "true"
        next_bookmark = self.now + BOOKMARK_SECONDS
        began, told = self.now, request.query.get("resourceVersion") == self._version
        if not told:
            await self._send(request, response, "MODIFIED", self._job() if collection == JOBS else self._pod())
        while self.now < until and not self._is_gone:
            marks = [until, *([next_bookmark] if bookmarks else []), *([] if self.has_ended else [self.end])]
            marks += [self.fault.at] if self.fault.expired and began < self.fault.at else []
            await self._until(min(mark for mark in marks if mark > self.now - 0.001))
            if self.fault.expired and began < self.fault.at <= self.now:
                await self._send(request, response, "ERROR", make_status(410, "Expired"))
                return response
            if self.has_ended and request.query.get("resourceVersion") == "1" and told:
                told = False
                kind = "DELETED" if self._is_absent(collection) else "MODIFIED"
                await self._send(request, response, kind, self._job() if collection == JOBS else self._pod())
            elif bookmarks and self.now >= next_bookmark:
                next_bookmark += BOOKMARK_SECONDS
                kind = "MXJob" if collection == JOBS else "Pod"
                mark = {"kind": kind, "metadata": {"resourceVersion": self._version}}
                await self._send(request, response, "BOOKMARK", mark)
        return response

    async def _send(self, request: web.Request, response: web.StreamResponse, kind: str, thing: dict[str, Any]) -> None:
        await self._thaw(request)
        await response.write(json.dumps({"type": kind, "object": thing}).encode() + b"\n")

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        """Send the half of an archive with `model`, and after ten seconds the other one."""
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            member = tarfile.TarInfo("model")
            member.size = len(self.model)
            archive.addfile(member, io.BytesIO(self.model))
        half = len(self.model) // 2
        answering = asyncio.create_task(self._answer_pings(request, socket))
        try:
            await socket.send_bytes(b"\x01" + packed.getvalue()[:half])
            await asyncio.sleep(10)
            await self._thaw(request)
            await socket.send_bytes(b"\x01" + packed.getvalue()[half:])
            await socket.send_bytes(b'\x03{"status": "Success"}')
        finally:
            answering.cancel()
        return socket

    async def _answer_pings(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        while True:
            await self._thaw(request)
            with contextlib.suppress(TimeoutError):
                await socket.receive(timeout=1)

    async def _log(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        query = request.query
        follows, stamps = query.get("follow") == "true", query.get("timestamps") == "true"
        since = query.get("sinceTime")
        first = (datetime.fromisoformat(since) - _BEGINNING).total_seconds() if since else 0.0
        await response.prepare(request)
        written = [number for number, at in enumerate(self.lines) if at <= self.now]
        due = [number for number in range(len(self.lines)) if int(self.lines[number]) >= first]
        if tail := query.get("tailLines"):
            due = [number for number in due if number not in written or number in written[-int(tail) :]]
        for number in due:
            if self.lines[number] > self.now:
                if not follows:
                    break
                await self._until(self.lines[number])
            await self._thaw(request)
            stamp = (_BEGINNING + timedelta(seconds=self.lines[number])).isoformat(timespec="microseconds")
            text = f"{stamp.replace('+00:00', 'Z')} " if stamps else ""
            await response.write(f"{text}line {number}\n".encode())
        if follows:
            await self._until(self.end)
            await self._thaw(request)
        return response
