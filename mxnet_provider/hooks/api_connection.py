"""One asynchronous connection to an API server: requests in, JSON or bytes out, nothing that blocks the loop."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

import aiohttp
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from requests.utils import should_bypass_proxies

from mxnet_provider.hooks import answers

_CONNECT_SECONDS: Final = 10
_REPLY_SECONDS: Final = 30
_CONNECTIONS: Final = 100
"""More than a task follows logs, each of which holds one."""
_LOG_CHUNK: Final = 64 * 1024


class ApiConnection:
    """A session with an API server, made by `open_connection`."""

    def __init__(self, configuration: client.Configuration, session: aiohttp.ClientSession) -> None:
        self._configuration = configuration
        self._session = session
        proxy = _proxy(configuration)
        self._through = {} if proxy is None else {"proxy": proxy, "proxy_headers": configuration.proxy_headers}

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Any:
        """Ask, and return the decoded answer.

        Raises:
            ApiException: the server rejected it, or sends elsewhere.
            InvalidAnswerError: the answer is no JSON.
            aiohttp.ClientError, TimeoutError: it could not be asked, or did not answer within half a minute.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": content_type}
        timeout = aiohttp.ClientTimeout(total=_REPLY_SECONDS, sock_connect=_CONNECT_SECONDS)
        async with self._send(method, path, params, headers, data=data, timeout=timeout) as response:
            return answers.decoded(await response.read())

    async def stream(
        self, path: str, params: Mapping[str, str], idle_seconds: float | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an answer as they come; leaving early closes the connection."""
        idle = _REPLY_SECONDS if idle_seconds is None else idle_seconds
        timeout = aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS, sock_read=idle)
        async with self._send("GET", path, params, {"Accept": "*/*"}, timeout=timeout) as response:
            async for chunk in response.content.iter_chunked(_LOG_CHUNK):
                yield chunk

    @contextlib.asynccontextmanager
    async def _send(
        self, method: str, path: str, params: Mapping[str, str] | None, headers: dict[str, str], **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers |= await self._authorization()
        url = self._configuration.host.rstrip("/") + path
        options["allow_redirects"] = False  # a login page; no API server sends elsewhere
        options["server_hostname"] = self._configuration.tls_server_name or None
        options |= self._through
        async with self._session.request(method, url, params=params, headers=headers, **options) as response:
            if response.status >= 300:
                body = await response.text(errors="replace")
                refusal = ApiException(status=response.status, reason=response.reason)
                refusal.body = body
                raise refusal
            yield response

    async def _authorization(self) -> dict[str, str]:
        settings = self._configuration.auth_settings
        # With a hook, a token is read from a file or fetched by a program when it grows old.
        found = await asyncio.to_thread(settings) if self._configuration.refresh_api_key_hook else settings()
        token = found.get("BearerToken")
        return {"Authorization": token["value"]} if token else {}


@contextlib.asynccontextmanager
async def open_connection(configuration: client.Configuration, user_agent: str = "") -> AsyncIterator[ApiConnection]:
    """Return a connection, open until the context ends; the server's audit log names its `user_agent`."""
    context = await asyncio.to_thread(_ssl_context, configuration)  # reads certificates
    connector = aiohttp.TCPConnector(ssl=context, limit=_CONNECTIONS)
    headers = {"User-Agent": user_agent} if user_agent else {}
    async with aiohttp.ClientSession(connector=connector, headers=headers, trust_env=False) as session:
        yield ApiConnection(configuration, session)


def _proxy(configuration: client.Configuration) -> str | None:
    """Return the proxy on the way to the server, by the rule of the Kubernetes client's own requests."""
    if not configuration.proxy or should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return None
    return str(configuration.proxy)


def _ssl_context(configuration: client.Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # As the Kubernetes client: authorities of old clusters lack what Python 3.13 began to ask for.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
