"""The real Kubernetes control plane of a test run: started when the first test needs it, stopped after the last.

Tests that need it are marked `kubernetes`, with the names of further programs that they need. All are built before the
first test, not on a test's clock.
"""

import asyncio
import contextlib
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from apiserver_fixtures import LONGEST_EVENT, Api
from control_plane import Server, control_plane
from kubectl import kubectl_on_path
from kubernetes_programs import (
    CONTROL_PLANE,
    PACKAGES,
    MissingProgramError,
    building,
    missing,
    programs,
    programs_or_skip,
)
from left_overs import folder_prefix
from progress import say
from waiting import SECONDS

from mxnet_operator.api.definitions import definitions


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the collected tests need."""
    config = session.config
    if config.option.collectonly:
        return
    markers = [marker for item in session.items if (marker := item.get_closest_marker("kubernetes"))]
    wanted = {name for marker in markers for name in (*CONTROL_PLANE, *marker.args)}
    if not kubectl_on_path():
        wanted.add("kubectl")
    if not missing(wanted):
        return
    with building():  # one of pytest's workers builds, the others find what it has built
        absent = missing(wanted)
        if absent and shutil.which("go") is not None:
            say(config, f"Building {', '.join(sorted(absent))} with Go: minutes, the first time")
        for module in {PACKAGES[name][0] for name in absent}:  # those of one module at once: they share packages
            with contextlib.suppress(MissingProgramError):  # the tests say it
                programs([name for name in absent if PACKAGES[name][0] is module])


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
async def new_namespace(api: Api, *, accounts: bool) -> AsyncIterator[str]:
    """A namespace with a name of its own; `accounts` waits until pods have an account to run as."""
    created = await api.post("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    name = created.ok()["metadata"]["name"]
    if accounts:
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        async with asyncio.timeout(SECONDS), api.watch(path, fieldSelector="metadata.name=default") as stream:
            assert (await stream.next())["type"] == "ADDED"
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")
