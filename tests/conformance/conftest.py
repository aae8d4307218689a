"""Each of these tests runs twice: on our API server in memory and on a real kube-apiserver. The real one is right."""

import pytest
from apiserver_fixtures import running_server
from control_plane_fixtures import new_namespace, real_api

REAL = pytest.param("kubernetes", marks=pytest.mark.kubernetes)


@pytest.fixture(params=["local", REAL])
async def api(request, tmp_path):
    """The API under test: a base URL and a token."""
    if request.param == "kubernetes":
        async with real_api(request.getfixturevalue("kubernetes")) as real:
            yield real
    else:
        async with running_server(tmp_path) as local:
            yield local.api


@pytest.fixture
async def namespace(request, api):
    """A namespace of the test's own, in which pods can be created."""
    async with new_namespace(api, settled=request.node.get_closest_marker("kubernetes") is not None) as name:
        yield name
