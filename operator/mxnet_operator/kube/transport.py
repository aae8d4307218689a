"""Requests to one API server over one connection pool: authentication, time limits, retries, typed errors."""

import asyncio
import contextlib
import importlib.metadata
import logging
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, MutableSequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import msgspec
import tenacity
import yarl

from mxnet_operator.kube.credentials import Credentials
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, CredentialsError, WriteFencedError
from mxnet_operator.kube.observers import RequestObserver

Params = Mapping[str, str | int | bool]

_ATTEMPTS: Final = 4
_LONGEST_RETRY_AFTER: Final = 30.0
"""Seconds: a server that asks for more is answered by the caller's own back-off."""
_HEADERS_VALID: Final = 30.0
"""Seconds until the loader is asked for the token again; it reads a pod's token file at most once a minute."""
_BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError)
_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the server; `body` is encoded already."""

    method: str
    path: str
    params: Params
    body: bytes | None = None
    content_type: str = "application/json"
    may_send: Callable[[], bool] | None = None
    """Asked right before each attempt; where it says no, the request fails with WriteFencedError."""


class Transport:
    """The connection pool. Timeouts are in seconds; nothing connects before the first request."""

    def __init__(
        self,
        credentials: Credentials,
        connect_timeout: float,
        request_timeout: float,
        max_connections: int,
        observer: RequestObserver | None = None,
    ) -> None:
        """Take everything that a pool is made of; `open` makes it."""
        self._observer = observer or _ignore
        self.credentials = credentials
        self._timeout = aiohttp.ClientTimeout(total=request_timeout, connect=connect_timeout)
        self._max_connections = max_connections
        self._session: aiohttp.ClientSession | None = None
        self._auth: Mapping[str, str] = {}
        self._auth_until = 0.0
        self._auth_lock = asyncio.Lock()

    def open(self) -> None:
        """Make the pool; needs a running event loop."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._max_connections),
            headers={"Accept": "application/json, */*", "User-Agent": _user_agent()},
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def request(self, request: Request, *, warnings: MutableSequence[str] | None = None) -> bytes:
        """Send one request and return the reply's body, having tried again where that is safe."""

        def worth_retrying(error: BaseException) -> bool:
            if isinstance(error, ApiUnavailable):
                return request.method == "GET"
            if isinstance(error, ApiError):
                asked = error.retry_after
                patient = asked is not None and asked <= _LONGEST_RETRY_AFTER
                return patient and (error.code == 429 or (request.method == "GET" and error.is_transient))
            return False

        async for attempt in tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(_ATTEMPTS),
            wait=_wait,
            retry=tenacity.retry_if_exception(worth_retrying),
            reraise=True,
        ):
            with attempt:
                async with self._exchange(request, self._timeout) as reply:
                    _note_warnings(reply, warnings, request)
                    return await reply.read()
        raise AssertionError("tenacity returns or raises")

    async def stream(self, request: Request, idle_timeout: float | None) -> AsyncGenerator[bytes]:
        """The reply's body in the pieces in which it arrives, however long it goes on."""
        timeout = aiohttp.ClientTimeout(total=None, connect=self._timeout.connect, sock_read=idle_timeout)
        async with self._exchange(request, timeout) as reply:
            async for chunk in reply.content.iter_any():
                yield chunk

    @contextlib.asynccontextmanager
    async def _exchange(
        self,
        request: Request,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own kind, with its parts
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request with our credentials, sent once more with fresh ones where the server answers 401."""
        try:
            credentials = self.credentials
            reply = await self._send(request, timeout)
            if reply.status == 401 and await self._renew(credentials):
                reply.release()
                reply = await self._send(request, timeout)
            async with reply:
                if reply.status >= 400:
                    raise await _error(reply)
                yield reply
        except _BROKEN as error:
            raise ApiUnavailable(f"{self.credentials.server}: {_in_words(error)}") from error

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
        finally:
            self._observer(request.method, url.authority, outcome)
        return reply

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
        if time.monotonic() >= self._auth_until:
            async with self._auth_lock:
                if time.monotonic() >= self._auth_until:
                    self._auth = await asyncio.to_thread(self.credentials.headers)
                    self._auth_until = time.monotonic() + _HEADERS_VALID
        return self._auth

    async def _renew(self, refused: Credentials) -> bool:
        """Load the credentials anew, unless another request did so meanwhile; False where that fails."""
        async with self._auth_lock:
            if self.credentials is refused:
                try:
                    self.credentials = await asyncio.to_thread(refused.reload)
                except CredentialsError as error:
                    log.warning("the server refused our credentials, and they can't be reloaded: %s", error)
                    return False
                self._auth_until = 0.0
        return True


def _ignore(method: str, host: str, code: str) -> None:
    """Nobody counts."""


def _in_words(error: Exception) -> str:
    """What broke; aiohttp's own text shows the internals of its connection key."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not to be trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        return os.strerror(number) if number > 0 else str(error.os_error)
    return str(error) or type(error).__name__


def _wait(state: tenacity.RetryCallState) -> float:
    """Seconds until the next attempt: what the server asks for, else exponential with full jitter."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, ApiError) and error.retry_after is not None:
        return error.retry_after
    return tenacity.wait_random_exponential(multiplier=0.1, max=2.0)(state)


async def _error(reply: aiohttp.ClientResponse) -> ApiError:
    body = await reply.read()
    try:
        status = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        status = {"message": body.decode("utf-8", "replace").strip()[:1000]}
    error = ApiError.from_status(status, reply.status)
    seconds = reply.headers.get("Retry-After", "")
    if seconds.isdigit():
        error.retry_after = float(seconds)
    return error


def _note_warnings(reply: aiohttp.ClientResponse, warnings: MutableSequence[str] | None, request: Request) -> None:
    for header in reply.headers.getall("Warning", ()):
        for text in _WARNING.findall(header):
            plain = re.sub(r"\\(.)", r"\1", text)
            if warnings is None:
                log.info("%s %s: the server warns: %s", request.method, request.path, plain)
            else:
                warnings.append(plain)


def _user_agent() -> str:
    try:
        return f"mxnet-operator/{importlib.metadata.version('mxnet-operator')}"
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        return "mxnet-operator"
