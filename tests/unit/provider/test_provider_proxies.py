"""Tasks and triggers reach the API server by the proxies that the official client would take, or by none."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import urllib3
from kubernetes import client
from kubernetes.client.rest import RESTClientObject

from mxnet_operator.client.job_client import JobRef
from mxnet_provider.hooks import kube_configuration
from mxnet_provider.hooks.mxnet_job import MXNetJobHook

ANSWER = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


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
    configuration.no_proxy = no_proxy
    worker = isinstance(RESTClientObject(configuration).pool_manager, urllib3.ProxyManager)
    monkeypatch.setattr(kube_configuration, "load", lambda *_, **__: configuration)
    async with MXNetJobHook(kubernetes_conn_id=None).job_client() as jobs:
        assert await jobs.get_job(JobRef(name="none", namespace="default")) is None
    assert asked[0].startswith("GET http://" if worker else "GET /apis")
