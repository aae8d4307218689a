"""Fixtures of the API server's tests: a started server, an HTTP client for it, and the real kubectl."""

import pytest
from apiserver_fixtures import Kubectl, running_server
from kubernetes_programs import kubectl as find_kubectl


@pytest.fixture
async def running(tmp_path):
    async with running_server(tmp_path) as started:
        yield started


@pytest.fixture
async def api(running):
    """The API under test: a base URL and a token. A real kube-apiserver can stand here."""
    return running.api


@pytest.fixture
async def namespace(api):
    """A namespace of the test's own."""
    created = await api.post("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    name = created.ok()["metadata"]["name"]
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
async def kubectl(running):
    return Kubectl(find_kubectl(), running)
