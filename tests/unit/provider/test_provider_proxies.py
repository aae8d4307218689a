"""A trigger reaches the API server by the same proxies as the worker, and without them where the worker does."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import urllib3
from kubernetes import client
from kubernetes.client.rest import RESTClientObject

from mxnet_provider.hooks.api_connection import open_connection

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@pytest.fixture
async def served() -> AsyncIterator[tuple[int, list[str]]]:
    """A port that answers as a server and as a proxy, and what it was sent: a proxy is asked for a whole URL."""
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], asked


@pytest.mark.parametrize(
    "no_proxy",
    [
        None,
        "",
        "127.0.0.1",
        "127.0.0.0/8",
        "10.0.0.0/8,127.0.0.1",
        "10.0.0.0/8",
        "svc.cluster.local, 127.0.0.1",
        ".example.com",
        "*",
    ],
)
async def test_a_proxy_is_used_where_the_worker_uses_it(
    served: tuple[int, list[str]], no_proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, asked = served
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    configuration = client.Configuration()
    configuration.host = f"http://127.0.0.1:{port}"
    configuration.proxy = f"http://127.0.0.1:{port}"
    configuration.proxy_headers = {"X-Team": "training"}
    configuration.no_proxy = no_proxy
    worker = isinstance(RESTClientObject(configuration).pool_manager, urllib3.ProxyManager)
    async with open_connection(configuration) as connection:
        assert await connection.request("GET", "/version") == {}
    assert asked[0].startswith("GET http://" if worker else "GET /version")


async def test_a_proxy_gets_its_own_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are for the proxy: with TLS they stand in its CONNECT alone, which is all that this proxy sees."""
    asked: list[str] = []

    async def reject(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with await asyncio.start_server(reject, "127.0.0.1", 0) as proxy:
        configuration = client.Configuration()
        configuration.host = "https://api.example.com:6443"
        configuration.proxy = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        configuration.proxy_headers = {"Proxy-Authorization": "Basic eDp5"}
        async with open_connection(configuration) as connection:
            with pytest.raises(Exception, match="403"):
                await connection.request("GET", "/version")
    assert asked[0].startswith("CONNECT api.example.com:6443")
    assert "Proxy-Authorization: Basic eDp5" in asked[0]
