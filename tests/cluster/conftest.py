"""Fixtures of the tests that need a real Kubernetes; each is marked `kubernetes`."""

import pytest
from control_plane_fixtures import new_namespace, real_api


@pytest.fixture
async def api(kubernetes):
    """The administrator's access to the real API."""
    async with real_api(kubernetes) as real:
        yield real


@pytest.fixture
async def namespace(api):
    """A namespace of the test's own, in which pods can be created."""
    async with new_namespace(api, accounts=True) as name:
        yield name
