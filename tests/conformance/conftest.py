"""Each of these tests runs twice: on our API server in memory and on a real kube-apiserver. The real one is right."""

import asyncio
import contextlib
import ssl

import aiohttp
import pytest
from apiserver_fixtures import Api, running_server


@contextlib.asynccontextmanager
async def real_api(server):
    trust = ssl.create_default_context(cafile=str(server.authority))
    connector, limit = aiohttp.TCPConnector(ssl=trust), aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, timeout=limit) as session:
        yield Api(session, server.url, server.token)


@pytest.fixture(params=["local", pytest.param("kubernetes", marks=pytest.mark.kubernetes)])
async def api(request, tmp_path):
    """The API under test: a base URL and a token."""
    if request.param == "kubernetes":
        async with real_api(request.getfixturevalue("kubernetes")) as started:
            yield started
    else:
        async with running_server(tmp_path) as started:
            yield started.api


@pytest.fixture
async def namespace(request, api):
    """A namespace of the test's own, in which pods can be created."""
    created = await api.post("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    name = created.ok()["metadata"]["name"]
    if request.node.get_closest_marker("kubernetes"):
        await service_account(api, name)
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")


async def service_account(api, namespace):
    """Wait until kube-controller-manager has made the account that pods run as."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    async with asyncio.timeout(30), api.watch(accounts, fieldSelector="metadata.name=default") as stream:
        assert (await stream.next())["type"] == "ADDED"
