"""The real Kubernetes control plane of a test run: started when the first test needs it, stopped after the last.

Tests that need it are marked `kubernetes`, with the names of further programs that they need. A test that needs no
control plane but some of those programs is marked `programs`.
"""

import asyncio
import contextlib
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from apiserver_fixtures import LONGEST_EVENT, Api
from control_plane import Server, control_plane
from kubernetes_programs import AWAITED, CONTROL_PLANE, await_build, programs_or_skip
from left_overs import folder_prefix
from waiting import SECONDS

from mxnet_operator.api.crd import definitions

_PROGRAMS = Path(__file__).with_name("kubernetes_programs.py")


def pytest_sessionstart(session: pytest.Session) -> None:
    """With TIER=all build what is missing beside the tests, until the run ends; errors are shown."""
    config = session.config
    if config.getoption("--tier") == "all" and not (hasattr(config, "workerinput") or config.option.collectonly):
        os.environ[AWAITED] = "1"
        build = subprocess.Popen([sys.executable, _PROGRAMS], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

        def end() -> None:
            build.terminate()
            build.wait()

        config.add_cleanup(end)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # not on a test's clock
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Wait for the programs of a test that are being built."""
    if os.environ.get(AWAITED):
        await_build(needed(item))
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs are not there."""
    programs_or_skip(needed(item))


def needed(item: pytest.Item) -> set[str]:
    """The programs that a test needs."""
    found = {name for mark in item.iter_markers("programs") for name in mark.args}
    for mark in item.iter_markers("kubernetes"):
        found |= {*CONTROL_PLANE, *mark.args}
    return found


@contextlib.contextmanager
def our_kubernetes() -> Iterator[Server]:
    """A real Kubernetes API that serves our CRDs, until the context ends."""
    paths = programs_or_skip(CONTROL_PLANE)
    with (
        tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder,
        control_plane(paths, Path(folder), definitions()) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Server]:
    """The one that all tests share."""
    with our_kubernetes() as server:
        yield server


@contextlib.asynccontextmanager
async def real_api(server: Server, seconds: float | None = SECONDS) -> AsyncIterator[Api]:
    """An HTTP client of its administrator's; no answer, nor a watch, takes longer than the seconds."""
    trust = ssl.create_default_context(cafile=str(server.authority))
    connector, limit = aiohttp.TCPConnector(limit=0, ssl=trust), aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(connector=connector, timeout=limit, read_bufsize=LONGEST_EVENT) as session:
        yield Api(session, server.url, server.token)


@contextlib.asynccontextmanager
async def new_namespace(api: Api, *, settled: bool) -> AsyncIterator[str]:
    """A namespace with a name of its own; `settled` waits for all that the controller manager puts in."""
    created = await api.post("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    name = created.ok()["metadata"]["name"]
    for kind, waited_for in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")) if settled else ():
        url, only = f"/api/v1/namespaces/{name}/{kind}", f"metadata.name={waited_for}"
        async with asyncio.timeout(SECONDS), api.watch(url, fieldSelector=only) as stream:
            assert (await stream.next())["type"] == "ADDED"
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")
