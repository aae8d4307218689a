"""A running API server with its certificate authority and kubeconfig, and an HTTP client for any Kubernetes API."""

import asyncio
import json
import os
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import trustme
import yaml
from waiting import SECONDS

from mxnet_operator.api.definitions import definitions
from mxnet_operator.local.apiserver import ApiServer

TOKEN = "a-token-for-tests"


class Answer:
    """An HTTP answer: its code, headers and decoded body."""

    def __init__(self, code, headers, text):
        self.code, self.headers, self.text = code, headers, text

    @property
    def body(self):
        return json.loads(self.text)

    def ok(self):
        """The body of an answer that isn't a refusal."""
        assert self.code < 300, f"{self.code}: {self.text}"
        return self.body


class WatchStream:
    """The events of one watch, as they come."""

    def __init__(self, response):
        self.response = response

    async def next(self):
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(SECONDS):
            line = await self.response.content.readline()
        return json.loads(line) if line else None

    async def until(self, holds, found):
        """The objects by name, once `holds` is true of them: `found` to begin with, changed by what is told.

        None at the end of the stream.
        """
        while event := await self.next():
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                found.pop(name, None)
            else:
                found[name] = event["object"]
            if holds(found):
                return found
        return None

    async def take(self, count):
        return [await self.next() for _ in range(count)]


@dataclass
class Api:
    """A Kubernetes API under a base URL, asked with a token: ours, or a real kube-apiserver."""

    session: aiohttp.ClientSession
    base: str
    token: str

    async def ask(self, method, path, body=None, *, content_type="application/json", headers=None, raw=None, **query):
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"} | (headers or {})
        data = raw if raw is not None else (json.dumps(body).encode() if body is not None else None)
        if data is not None:
            sent["Content-Type"] = content_type
        async with self.session.request(method, self.base + path, data=data, headers=sent, params=query) as response:
            return Answer(response.status, response.headers, await response.text())

    async def get(self, path, **query):
        return await self.ask("GET", path, **query)

    async def post(self, path, body, **query):
        return await self.ask("POST", path, body, **query)

    async def put(self, path, body, **query):
        return await self.ask("PUT", path, body, **query)

    async def merge(self, path, body, **query):
        return await self.ask("PATCH", path, body, content_type="application/merge-patch+json", **query)

    async def delete(self, path, body=None, **query):
        return await self.ask("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(self, path, *, headers=None, **query):
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"} | (headers or {})
        asked = {"watch": "true"} | query
        endless = aiohttp.ClientTimeout(total=None)
        async with self.session.get(self.base + path, headers=sent, params=asked, timeout=endless) as response:
            assert response.status == 200, await response.text()
            yield WatchStream(response)


@dataclass
class RunningServer:
    """A started server and what a client needs to reach it."""

    server: ApiServer
    port: int
    token: str
    certificate: Path
    kubeconfig: Path
    home: Path
    api: Api = field(default=None)

    def kubectl_environment(self):
        return {"HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig), "PATH": os.environ["PATH"], "LC_ALL": "C"}


def write_kubeconfig(path, port, token, certificate):
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [
                    {
                        "name": "test",
                        "cluster": {
                            "server": f"https://127.0.0.1:{port}",
                            "certificate-authority": str(certificate),
                        },
                    }
                ],
                "users": [{"name": "test", "user": {"token": token}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "default"}}],
            }
        )
    )
    path.chmod(0o600)


@asynccontextmanager
async def running_server(folder, *, crds=None, log_source=None, **options):
    """A server on loopback over TLS; its files are in `folder`."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    certificate = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(certificate))
    server = ApiServer(definitions() if crds is None else crds, TOKEN, log_source, **options)
    port = await server.start(context)
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, port, TOKEN, certificate)
    trust = ssl.create_default_context(cafile=str(certificate))
    try:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust), timeout=aiohttp.ClientTimeout(total=SECONDS)
        ) as session:
            api = Api(session, f"https://127.0.0.1:{port}", TOKEN)
            yield RunningServer(server, port, TOKEN, certificate, kubeconfig, folder, api)
    finally:
        await server.stop()


class Kubectl:
    """The real kubectl against one server."""

    def __init__(self, program, running):
        self._program = program
        self._environment = running.kubectl_environment()
        self._cache = running.home / "cache"

    async def start(self, *arguments, stdin=None):
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

    async def run(self, *arguments, stdin=None):
        """Exit code, stdout and stderr. A manifest given as `stdin` is sent as JSON."""
        process = await self.start(*arguments, stdin=stdin)
        data = json.dumps(stdin).encode() if stdin is not None else None
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate(data)
        return process.returncode, out.decode(), err.decode()

    async def ok(self, *arguments, stdin=None):
        """stdout of a kubectl that must succeed."""
        code, out, err = await self.run(*arguments, stdin=stdin)
        assert code == 0, f"kubectl {' '.join(arguments)}: {code}\n{out}\n{err}"
        return out

    async def refused(self, *arguments, stdin=None):
        """stderr of a kubectl that must fail."""
        code, out, err = await self.run(*arguments, stdin=stdin)
        assert code != 0, f"kubectl {' '.join(arguments)} succeeded:\n{out}"
        return err
