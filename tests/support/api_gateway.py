"""A gate before a Kubernetes API that a test can shut and listen at: outages, new tokens, refusals, late replies.

Everything that passes is answered by the API behind it, ours or a real one.
"""

import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import trustme
import yaml
from aiohttp import web
from kubeconfigs import write_kubeconfig
from served_requests import in_thread, served_requests

Forward = Callable[[], Awaitable[web.StreamResponse]]
Handler = Callable[["Asked", Forward], Awaitable[web.StreamResponse | None]]


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    agent: str

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")


@dataclass
class Gateway:
    """The gate; its attributes may be set from any thread at any time."""

    folder: Path
    behind: Path
    """The kubeconfig of the API that answers."""
    tokens: set[str] = field(default_factory=lambda: {"first-token"})
    down: bool = False
    """Nothing gets through of those whose user agent contains `down_for`, which are all unless a test names some."""
    down_for: str = ""
    handler: Handler | None = None
    """Sees every request first; what it returns is the answer, None lets the request pass."""
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def use_token(self, token: str) -> None:
        """Write the kubeconfig with this token."""
        write_kubeconfig(self.kubeconfig, f"https://127.0.0.1:{self.port}", token, self.folder / "ca.pem")

    def rotate(self, token: str) -> None:
        """From now on only this token is accepted, and the kubeconfig has it."""
        self.use_token(token)
        self.tokens = {token}

    def writes(self, part: str = "") -> list[Asked]:
        """The requests so far that change something whose path has this in it."""
        return [each for each in self.asked if each.writes and part in each.path]


def refusal(code: int, reason: str, message: str) -> web.Response:
    """What an API server answers when it refuses."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return web.json_response({**status, "reason": reason, "message": message, "code": code}, status=code)


@contextmanager
def gateway_to(kubeconfig: Path, folder: Path) -> Iterator[Gateway]:
    """A gate on loopback before the cluster that a kubeconfig leads to, on an event loop of its own."""
    with in_thread(_served(Gateway(folder, kubeconfig))) as gateway:
        yield gateway


class Sessions:
    """The gate's own connections to what is behind it, one for each kubeconfig."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[aiohttp.ClientSession, str]] = {}

    def to(self, kubeconfig: Path) -> tuple[aiohttp.ClientSession, str]:
        """The session and the token that it takes."""
        if kubeconfig not in self._open:
            config = yaml.safe_load(kubeconfig.read_text())
            cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
            connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(**_authority(cluster)))
            timeout = aiohttp.ClientTimeout(total=None)
            session = aiohttp.ClientSession(cluster["server"], connector=connector, timeout=timeout)
            self._open[kubeconfig] = session, user["token"]
        return self._open[kubeconfig]

    async def close(self) -> None:
        for session, _ in self._open.values():
            await session.close()


@asynccontextmanager
async def _served(gateway: Gateway) -> AsyncIterator[Gateway]:
    sessions = Sessions()

    async def handle(request: web.Request) -> web.StreamResponse:
        return await _handle(gateway, *sessions.to(gateway.behind), request)

    async with served_requests(handle, _identity(gateway.folder)) as port:
        gateway.port = port
        gateway.use_token(next(iter(gateway.tokens)))
        yield gateway
    await sessions.close()


def _authority(cluster: dict[str, str]) -> dict[str, Any]:
    if "certificate-authority" in cluster:
        return {"cafile": cluster["certificate-authority"]}
    return {"cadata": base64.b64decode(cluster["certificate-authority-data"]).decode()}


def _identity(folder: Path) -> ssl.SSLContext:
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    return context


async def _handle(
    gateway: Gateway, session: aiohttp.ClientSession, token: str, request: web.Request
) -> web.StreamResponse:
    if gateway.down and gateway.down_for in request.headers.get("User-Agent", ""):
        assert request.transport is not None
        request.transport.abort()
        return web.Response()
    raw = await request.read()
    asked = Asked(
        request.method,
        request.path,
        dict(request.query),
        json.loads(raw) if raw[:1] == b"{" else None,
        request.headers.get("User-Agent", ""),
    )
    gateway.asked.append(asked)
    if request.headers.get("Authorization", "").removeprefix("Bearer ") not in gateway.tokens:
        return refusal(401, "Unauthorized", "Unauthorized")

    async def forward() -> web.StreamResponse:
        headers = {name: value for name in ("Accept", "Content-Type") if (value := request.headers.get(name))}
        headers["Authorization"] = f"Bearer {token}"
        async with session.request(
            request.method, request.path, params=request.query, data=raw or None, headers=headers
        ) as answer:
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers.get("Content-Type", "")}
            )
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    if gateway.handler is not None and (answer := await gateway.handler(asked, forward)) is not None:
        return answer
    return await forward()
