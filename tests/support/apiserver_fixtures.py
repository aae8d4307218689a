"""A running API server with its certificate authority and kubeconfig, and an HTTP client for any Kubernetes API."""

import asyncio
import io
import json
import os
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import trustme
from kubeconfigs import write_kubeconfig
from waiting import SECONDS, patience

from mxnet_operator.api.crd import definitions
from mxnet_operator.local.apiserver.server import ApiServer

TOKEN = "a-token-for-tests"


class Answer:
    """An HTTP answer: its code, headers and decoded body."""

    def __init__(self, code: int, headers: Mapping[str, str], text: str) -> None:
        self.code, self.headers, self.text = code, headers, text

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    def ok(self) -> Any:
        """The body of an answer that isn't a refusal."""
        assert self.code < 300, f"{self.code}: {self.text}"
        return self.body


LONGEST_EVENT = 1 << 20
"""Bytes of an event that a watch can read: older aiohttp reads no line that is twice as long as its buffer."""


class WatchStream:
    """The events of one watch, as they come."""

    def __init__(self, response: Any) -> None:
        self.response = response

    async def next(self) -> Any:
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(patience()):
            line = await self.response.content.readline()
        return json.loads(line) if line else None

    async def until(self, holds: Callable[[Any], Any], found: dict[str, dict[str, Any]]) -> Any:
        """The objects by name, once `holds` is true of them: `found` to begin with, changed by what is told.

        None at the end of the stream, also where the server says that there is no more to come of this one.
        """
        while (event := await self.next()) and event["type"] != "ERROR":
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                found.pop(name, None)
            else:
                found[name] = event["object"]
            if holds(found):
                return found
        return None

    async def take(self, count: int) -> list[Any]:
        return [await self.next() for _ in range(count)]


@dataclass
class Api:
    """A Kubernetes API under a base URL, asked with a token: ours, or a real kube-apiserver."""

    session: aiohttp.ClientSession
    base: str
    token: str

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
        **query: Any,
    ) -> Answer:
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"} | (headers or {})
        data = raw if raw is not None else (json.dumps(body).encode() if body is not None else None)
        if data is not None:
            sent["Content-Type"] = content_type
        stream = io.BytesIO(data) if isinstance(data, bytes) else data  # aiohttp warns of bytes that are many
        async with self.session.request(method, self.base + path, data=stream, headers=sent, params=query) as response:
            return Answer(response.status, response.headers, await response.text())

    async def get(self, path: str, **query: Any) -> Answer:
        return await self.ask("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.ask("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.ask("PUT", path, body, **query)

    async def merge(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.ask("PATCH", path, body, content_type="application/merge-patch+json", **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self.ask("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(
        self, path: str, *, headers: dict[str, str] | None = None, **query: Any
    ) -> AsyncIterator[WatchStream]:
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"} | (headers or {})
        asked = {"watch": "true"} | query
        endless = aiohttp.ClientTimeout(total=None)
        async with self.session.get(self.base + path, headers=sent, params=asked, timeout=endless) as response:
            assert response.status == 200, await response.text()
            yield WatchStream(response)

    async def listed(self, path: str, **query: Any) -> tuple[dict[str, dict[str, Any]], str]:
        """The objects at the path by name, and the version from which on a watch tells what follows."""
        listed = (await self.get(path, **query)).ok()
        return {item["metadata"]["name"]: item for item in listed["items"]}, listed["metadata"]["resourceVersion"]

    async def until(self, path: str, holds: Callable[[Any], Any], **query: Any) -> Any:
        """The objects at the path by name, once `holds` is true of them: of those that are there, to begin with.

        A watch may end at any time, as it does where a CRD is changed: what follows is listed anew.
        """
        found: dict[str, dict[str, Any]] = {}
        seconds = patience()
        try:
            async with asyncio.timeout(seconds):
                while True:
                    found, since = await self.listed(path, **query)
                    if holds(found):
                        return found
                    async with self.watch(path, resourceVersion=since, **query) as events:
                        if await events.until(holds, found) is not None:
                            return found
        except TimeoutError:
            now, _ = await self.listed(path, **query)
            statuses = {name: each.get("status") for name, each in found.items()}
            missed = sorted(name for name, each in now.items() if found.get(name) != each)
            what = f"{path} has {json.dumps(statuses, indent=1)}; the watch has not told of {missed}"
            raise AssertionError(f"waited in vain for {seconds:g} s: {what}") from None


@dataclass
class RunningServer:
    """A started server and what a client needs to reach it."""

    server: ApiServer
    port: int
    token: str
    certificate: Path
    kubeconfig: Path
    home: Path
    api: Api

    def kubectl_environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig), "PATH": os.environ["PATH"], "LC_ALL": "C"}


@asynccontextmanager
async def running_server(
    folder: Path, *, crds: Any = None, log_source: Any = None, **options: Any
) -> AsyncIterator[RunningServer]:
    """A server on loopback over TLS; its files are in `folder`."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    certificate = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(certificate))
    server = ApiServer(definitions() if crds is None else crds, TOKEN, log_source, **options)
    port = await server.start(context)
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, f"https://127.0.0.1:{port}", TOKEN, certificate)
    trust = ssl.create_default_context(cafile=str(certificate))
    try:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust),
            timeout=aiohttp.ClientTimeout(total=SECONDS),
            read_bufsize=LONGEST_EVENT,
        ) as session:
            api = Api(session, f"https://127.0.0.1:{port}", TOKEN)
            yield RunningServer(server, port, TOKEN, certificate, kubeconfig, folder, api)
    finally:
        await server.stop()
        for _ in range(5):  # a TLS connection whose client is gone closes over a few turns of the loop
            await asyncio.sleep(0)


class Kubectl:
    """The real kubectl against one server."""

    def __init__(self, program: str, running: Any) -> None:
        self._program = program
        self._environment = running.kubectl_environment()
        self._cache = running.home / "cache"

    async def start(self, *arguments: str, stdin: str | None = None) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self._program,
            "--cache-dir",
            str(self._cache),
            *arguments,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str, stdin: str | None = None) -> tuple[int | None, str, str]:
        """Exit code, stdout and stderr. A manifest given as `stdin` is sent as JSON."""
        process = await self.start(*arguments, stdin=stdin)
        data = json.dumps(stdin).encode() if stdin is not None else None
        async with asyncio.timeout(patience()):
            out, err = await process.communicate(data)
        return process.returncode, out.decode(), err.decode()

    async def ok(self, *arguments: str, stdin: str | None = None) -> Any:
        """stdout of a kubectl that must succeed."""
        code, out, err = await self.run(*arguments, stdin=stdin)
        assert code == 0, f"kubectl {' '.join(arguments)}: {code}\n{out}\n{err}"
        return out

    async def refused(self, *arguments: str, stdin: str | None = None) -> str:
        """stderr of a kubectl that must fail."""
        code, out, err = await self.run(*arguments, stdin=stdin)
        assert code != 0, f"kubectl {' '.join(arguments)} succeeded:\n{out}"
        return err
