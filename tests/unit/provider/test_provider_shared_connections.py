"""Triggers on one event loop share connections: to one server, for whoever trusts and shows the same certificates."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from aiohttp import web
from kubeconfigs import write_kubeconfig
from scripted_api import make_object
from served_requests import served_requests
from waiting import MOMENT

from mxnet_operator.client.job_client import JobRef
from mxnet_provider.hooks.job_client import AsyncJobClient
from mxnet_provider.hooks.mxnet_job_async import MXNetJobAsyncHook

JOB = make_object("a", 1, apiVersion="kubeflow.org/v1", kind="MXJob")
REF = JobRef.of(JOB)


class Cluster:
    """A server over TLS that knows one job, and notes the connections and tokens of requests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.connections: list[asyncio.BaseTransport] = []
        self.tokens: list[str] = []

    def kubeconfig(self, name: str, *, more_authorities: bool = False) -> Path:
        authority = self.folder / f"{name}.pem"
        authority.write_bytes((self.folder / "ca.pem").read_bytes())
        if more_authorities:
            authority.write_bytes(authority.read_bytes() + trustme.CA().cert_pem.bytes())
        path = self.folder / name
        write_kubeconfig(path, f"https://127.0.0.1:{self.port}", f"token-of-{name}", authority)
        return path

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.connections.append(request.transport)
        self.tokens.append(request.headers["Authorization"])
        return web.json_response(JOB)


@contextlib.asynccontextmanager
async def running_cluster(folder: Path) -> AsyncIterator[Cluster]:
    cluster, authority, identity = Cluster(folder), trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(identity)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    async with served_requests(cluster.handle, identity) as cluster.port:
        yield cluster


def hook(kubeconfig: Path) -> MXNetJobAsyncHook:
    return MXNetJobAsyncHook(kubernetes_conn_id=None, config_file=str(kubeconfig))


async def test_triggers_share_a_connection_and_keep_their_own_tokens(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster, contextlib.AsyncExitStack() as held:
        hooks = [await held.enter_async_context(hook(cluster.kubeconfig(name))) for name in ("x", "y", "x")]
        for each in hooks:
            assert await each.get_job(REF) == JOB
        assert len(set(cluster.connections)) == 1
        assert cluster.tokens == ["Bearer token-of-x", "Bearer token-of-y", "Bearer token-of-x"]


async def test_the_last_trigger_closes_the_connections(tmp_path: Path) -> None:
    async with running_cluster(tmp_path) as cluster:
        async with hook(cluster.kubeconfig("x")) as first:
            async with hook(cluster.kubeconfig("x")) as last:
                await last.get_job(REF)
            await first.get_job(REF)
            assert len(set(cluster.connections)) == 1
        async with asyncio.timeout(MOMENT):
            while not cluster.connections[0].is_closing():  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.01)


async def test_other_certificates_take_other_connections(tmp_path: Path) -> None:
    """Who is to be trusted is looked at when a connection begins."""
    async with running_cluster(tmp_path) as cluster, contextlib.AsyncExitStack() as held:
        for more in (False, True):
            each = await held.enter_async_context(hook(cluster.kubeconfig(f"x{more}", more_authorities=more)))
            await each.get_job(REF)
        assert len(set(cluster.connections)) == 2


async def test_a_cluster_that_hangs_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of connections is limited for each server."""
    monkeypatch.setattr("mxnet_provider.hooks.mxnet_job_async._CONNECTIONS", 1)
    asked = asyncio.Event()

    async def hang(_: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("the wait has no end")

    async with running_cluster(tmp_path) as other, served_requests(hang) as port, hook(other.kubeconfig("x")) as fine:
        write_kubeconfig(tmp_path / "hanging", f"http://127.0.0.1:{port}", "token")
        async with hook(tmp_path / "hanging") as stuck:
            waiting = asyncio.create_task(stuck.get_job(REF))
            await asked.wait()
            assert await fine.get_job(REF) == JOB
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting


async def test_a_request_waits_for_a_connection_longer_than_for_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs on a node that doesn't answer may hold all of them."""
    monkeypatch.setattr("mxnet_provider.hooks.mxnet_job_async._CONNECTIONS", 1)
    monkeypatch.setattr(AsyncJobClient, "connect_seconds", 0.01)
    asked, held = asyncio.Event(), asyncio.Event()

    async def answer_later(_: web.Request) -> web.StreamResponse:
        asked.set()
        await held.wait()
        return web.json_response(JOB)

    async with served_requests(answer_later) as port:
        write_kubeconfig(tmp_path / "slow", f"http://127.0.0.1:{port}", "token")
        async with hook(tmp_path / "slow") as first, hook(tmp_path / "slow") as second:
            answers = [asyncio.create_task(first.get_job(REF))]
            await asked.wait()
            answers.append(asyncio.create_task(second.get_job(REF)))
            await asyncio.sleep(10 * AsyncJobClient.connect_seconds)
            held.set()
            assert await asyncio.gather(*answers) == [JOB, JOB]
