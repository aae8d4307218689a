"""Fixtures of the kubelet's tests."""

import pytest
from kubelet_fixtures import running_node


@pytest.fixture
async def node(tmp_path):
    async with running_node(tmp_path) as started:
        yield started
