"""HTTP transport to one API server: connection pool, authentication, time limits, retries, typed errors."""

import asyncio
import contextlib
import http
import importlib.metadata
import logging
import os
import re
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypedDict, TypeVar

import aiohttp
import msgspec
import yarl

from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.credentials import Credentials
from mxnet_operator.kube.errors import (
    ApiError,
    ApiUnavailable,
    CredentialsError,
    InvalidAnswerError,
    KubeError,
    SilentConnectionError,
    WriteFencedError,
)

T = TypeVar("T")

Params = Mapping[str, str | int | bool]
RequestObserver = Callable[[str, str, str], None]
"""Callback for each request sent, for metrics: method, the server's host and port, and the HTTP status or `<error>`."""

ATTEMPTS: Final = 4
"""How often a request that may be repeated is sent, the first time included."""
_BACKOFF: Final = Backoff(first=0.1, longest=2.0)
"""Pauses before a further attempt where the server asks for none."""
_LONGEST_RETRY_AFTER: Final = 30.0
"""Longest Retry-After in seconds that is obeyed here; for more, the caller's back-off applies."""
_HEADERS_VALID: Final = 30.0
"""Seconds for which the loader's headers are reused; it reads a pod's token file at most once a minute."""
_TRUST_AGAIN: Final = 10.0
"""Seconds between two reloads of the certificates while TLS handshakes fail."""
_LONGEST_TEXT: Final = 1000
"""Characters that are kept of an error's body that is not a Status."""
_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 3))
"""Seconds of silence before the first probe of a stream's connection and between two, and how many may be lost."""
_HEARTBEAT: Final = 40.0
"""Seconds between two pings of a WebSocket."""
_BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError)
_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """Request to the server; `body` is encoded already."""

    method: str
    path: str
    params: Params
    body: bytes | None = None
    content_type: str = "application/json"
    may_send: Callable[[], bool] | None = None
    """Called right before each attempt; where it returns false, the request fails with WriteFencedError."""


class Options(TypedDict, total=False):
    """Options of a connection pool; times are in seconds."""

    connect_timeout: float
    request_timeout: float
    max_connections: int
    observer: RequestObserver | None
    attempts: int
    user_agent: str
    """Replaces the usual one."""
    connector: aiohttp.TCPConnector | None
    """Its connections and their number are shared; whoever made it closes it."""
    clock: Callable[[], float]


class Transport:
    """Connection pool to one API server, which nothing connects to before the first request."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        connect_timeout: float = 10.0,
        request_timeout: float = 60.0,
        max_connections: int = 100,
        observer: RequestObserver | None = None,
        attempts: int = ATTEMPTS,
        user_agent: str = "",
        connector: aiohttp.TCPConnector | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Store the settings of the pool, which `open` creates where no `connector` is given."""
        self._attempts = attempts
        self._user_agent = user_agent or _user_agent()
        self._observer = observer or (lambda *_: None)
        self.credentials = credentials
        self._timeout = aiohttp.ClientTimeout(total=request_timeout, connect=connect_timeout)
        self._max_connections = max_connections
        self._connector = connector
        self._session: aiohttp.ClientSession | None = None
        self._auth: Mapping[str, str] = {}
        self._auth_until = 0.0
        self._auth_lock = asyncio.Lock()
        self._clock = clock or time.monotonic
        self._trust_again_at = float("-inf")
        self._distrusted_since: float | None = None

    def open(self) -> None:
        """Create the pool; needs a running event loop."""
        self._session = aiohttp.ClientSession(
            connector=self._connector or aiohttp.TCPConnector(limit=self._max_connections),
            connector_owner=self._connector is None,
            headers={"Accept": "application/json, */*", "User-Agent": self._user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close every connection of a pool of its own."""
        if self._session is not None:
            await self._session.close()

    def seconds_of_distrust(self) -> float:
        """Seconds for which requests have failed for untrusted certificates and nothing else; 0 after any other end."""
        return 0.0 if self._distrusted_since is None else self._clock() - self._distrusted_since

    async def request(
        self, request: Request, decode: Callable[[bytes], T], *, warnings: MutableSequence[str] | None = None
    ) -> T:
        """Send a request, retry it where that is safe, and return the decoded body of the response."""
        failures = 0
        while True:
            try:
                async with self._exchange(request, self._timeout) as reply:
                    _note_warnings(reply, warnings, request)
                    return self._decoded(request, reply, await reply.read(), decode)
            except KubeError as error:
                failures += 1
                if failures == self._attempts or not _is_worth_retrying(request, error):
                    raise
                pause = _pause(error, failures)
            await asyncio.sleep(pause)

    async def stream(self, request: Request, idle_timeout: float | None) -> AsyncGenerator[bytes]:
        """Yield the response's body in the chunks in which it arrives, without a time limit."""
        timeout = aiohttp.ClientTimeout(total=None, connect=self._timeout.connect, sock_read=idle_timeout)
        async with self._exchange(request, timeout) as reply:
            _keep_alive(reply)
            async for chunk in reply.content.iter_any():
                yield chunk

    @contextlib.asynccontextmanager
    async def websocket(
        self, path: str, params: Sequence[tuple[str, str]], protocol: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket to a path, for a subresource such as a pod's `exec`; messages have no limits."""
        credentials = self.credentials

        async def connected() -> aiohttp.ClientWebSocketResponse:
            if self._session is None:
                raise RuntimeError("the client is not open: use it as `async with Client(...)`")
            async with asyncio.timeout(self._timeout.total):  # aiohttp's own limit for a handshake is five minutes
                return await self._session.ws_connect(
                    yarl.URL(self.credentials.server + path, encoded=True),
                    params=params,
                    protocols=(protocol,),
                    headers=await self._authorization(),
                    max_msg_size=0,
                    heartbeat=_HEARTBEAT,
                    ssl=self.credentials.ssl or True,
                    server_hostname=self.credentials.server_hostname,
                    proxy=self.credentials.proxy,
                )

        try:
            try:
                opened = await self._trusting(connected)
            except aiohttp.WSServerHandshakeError as error:
                if error.status != 401 or not await self._renew(credentials):
                    raise
                opened = await connected()
            try:
                yield opened
            finally:
                await opened.close()
        except aiohttp.WSServerHandshakeError as error:
            raise ApiError(error.status, "", f"{path}: {http.HTTPStatus(error.status).phrase}") from error
        except _BROKEN as error:
            raise ApiUnavailable(f"{self.credentials.server}: {_in_words(error)}") from error

    @contextlib.asynccontextmanager
    async def _exchange(
        self,
        request: Request,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own kind, with its parts
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send one request with the credentials, once more with reloaded ones after a 401."""
        try:
            credentials = self.credentials
            reply = await self._trusting(lambda: self._send(request, timeout))
            if reply.status == 401 and await self._renew(credentials):
                reply.release()
                reply = await self._send(request, timeout)
            async with reply:
                if reply.status >= 400:
                    raise await _error(reply)
                if reply.status >= 300:
                    where = reply.headers.get("Location", "nowhere")
                    raise InvalidAnswerError(f"{self._asked(request, reply)} a redirection to {where}")
                yield reply
        except aiohttp.SocketTimeoutError as error:
            raise SilentConnectionError(f"{self.credentials.server}: {_in_words(error)}") from error
        except _BROKEN as error:
            raise ApiUnavailable(f"{self.credentials.server}: {_in_words(error)}") from error

    def _decoded(self, request: Request, reply: aiohttp.ClientResponse, body: bytes, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(body)
        except InvalidAnswerError as error:
            raise InvalidAnswerError(
                f"{self._asked(request, reply)} what a Kubernetes API server doesn't send: {error}"
            ) from error

    def _asked(self, request: Request, reply: aiohttp.ClientResponse) -> str:
        return f"{self.credentials.server} answered {request.method} {request.path} with {reply.status} and"

    async def _trusting(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request, once more with reloaded certificates where TLS fails: the CA may have been replaced."""
        credentials = self.credentials
        try:
            return await send()
        except _BROKEN as error:
            if not _is_about_tls(error) or not await self._trust_anew(credentials):
                raise
            # Nothing was carried out: no request comes before the handshake.
            return await send()

    async def _trust_anew(self, refused: Credentials) -> bool:
        if self.credentials is refused and not self._auth_lock.locked():  # else another request reloads them just now
            if self._clock() < self._trust_again_at:
                return False
            self._trust_again_at = self._clock() + _TRUST_AGAIN
        return await self._renew(refused)

    async def _send(
        self,
        request: Request,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open: use it as `async with Client(...)`")
        headers = dict(await self._authorization())
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if request.may_send is not None and not request.may_send():
            raise WriteFencedError(f"{request.method} {request.path} was not sent: the lease is lost")
        url = yarl.URL(self.credentials.server + request.path, encoded=True)
        outcome = "<error>"  # client-go's word for no answer at all
        try:
            reply = await self._request(request, url, headers, timeout)
            outcome = str(reply.status)
            self._note_trust(distrusted=False)
        except _BROKEN as error:
            self._note_trust(distrusted=_is_about_tls(error))
            raise
        finally:
            self._observer(request.method, url.authority, outcome)
        return reply

    def _note_trust(self, *, distrusted: bool) -> None:
        """Note whether TLS failed; a server that is away ends distrust as a reply does: then no restart would help."""
        if not distrusted:
            self._distrusted_since = None
        elif self._distrusted_since is None:
            self._distrusted_since = self._clock()

    async def _request(
        self,
        request: Request,
        url: yarl.URL,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109
    ) -> aiohttp.ClientResponse:
        assert self._session is not None  # noqa: S101 - `_send` has looked
        return await self._session.request(
            request.method,
            url,
            params={k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in request.params.items()},
            data=request.body,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            ssl=self.credentials.ssl or True,
            server_hostname=self.credentials.server_hostname,
            proxy=self.credentials.proxy,
        )

    async def _authorization(self) -> Mapping[str, str]:
        if self._clock() >= self._auth_until:
            async with self._auth_lock:
                if self._clock() >= self._auth_until:
                    self._auth = await asyncio.to_thread(self.credentials.headers)
                    self._auth_until = self._clock() + _HEADERS_VALID
        return self._auth

    async def _renew(self, refused: Credentials) -> bool:
        """Reload the credentials, unless another request did so meanwhile; false where that fails."""
        async with self._auth_lock:
            if self.credentials is refused:
                try:
                    self.credentials = await refused.reload()
                except CredentialsError as error:
                    log.warning(
                        "the server rejected the credentials or isn't trusted, and they can't be reloaded: %s", error
                    )
                    return False
                self._auth_until = 0.0
        return True


def _keep_alive(reply: aiohttp.ClientResponse) -> None:
    """Have the system probe a connection that may be quiet for hours: one that is dead ends then."""
    transport = None if reply.connection is None else reply.connection.transport
    connection = None if transport is None else transport.get_extra_info("socket")
    if connection is None:
        return
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEP_ALIVE:
            if hasattr(socket, option):  # not on every system
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _in_words(error: Exception) -> str:
    """Describe a connection error; aiohttp's own text shows the internals of its connection key."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not to be trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        return os.strerror(number) if number > 0 else str(error.os_error)
    return str(error) or type(error).__name__


def _is_worth_retrying(request: Request, error: KubeError) -> bool:
    if isinstance(error, ApiUnavailable):
        return request.method == "GET"
    if isinstance(error, ApiError):
        asked = error.retry_after
        patient = asked is not None and asked <= _LONGEST_RETRY_AFTER
        return patient and (error.code == 429 or (request.method == "GET" and error.is_transient))
    return False


def _pause(error: KubeError, failures: int) -> float:
    """Return the seconds until the next attempt: the server's Retry-After, else exponential with jitter."""
    asked = error.retry_after if isinstance(error, ApiError) else None
    return _BACKOFF.delay(failures) if asked is None else asked


def _is_about_tls(error: BaseException) -> bool:
    """Whether the TLS handshake failed: one side rejected the other's certificate."""
    return isinstance(error, aiohttp.ClientSSLError | ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError)


async def _error(reply: aiohttp.ClientResponse) -> ApiError:
    body = await reply.read()
    try:
        status = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        status = None
    if not isinstance(status, dict):
        status = {"message": body.decode("utf-8", "replace").strip()[:_LONGEST_TEXT]}
    error = ApiError.from_status(status, reply.status)
    asked = _retry_after(reply.headers.get("Retry-After", ""))
    if asked is not None:
        error.retry_after = asked
    return error


def _retry_after(header: str) -> float | None:
    """Parse a Retry-After header, a number or a date (RFC 9110), into seconds; None where it has neither."""
    if header.isdecimal():
        return float(header)
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max((until - datetime.now(UTC)).total_seconds(), 0.0)


def _note_warnings(reply: aiohttp.ClientResponse, warnings: MutableSequence[str] | None, request: Request) -> None:
    for header in reply.headers.getall("Warning", ()):
        for text in _WARNING.findall(header):
            plain = re.sub(r"\\(.)", r"\1", text).encode("utf-8", "replace").decode()  # headers may be any bytes
            if warnings is None:
                log.info("%s %s: the server warns: %s", request.method, request.path, plain)
            else:
                warnings.append(plain)


def _user_agent() -> str:
    try:
        return f"mxnet-operator/{importlib.metadata.version('mxnet-operator')}"
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "mxnet-operator"
