"""Airflow and Argo at work on the node; marks the tests of this folder: each needs the node, built beforehand."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow_command import AirflowHome
from postgres import Postgres
from real_node import argo
from real_node.node import RealNode
from real_node_fixtures import NodeWorld, had_or_refused

TEMPLATES = Path(__file__).parents[2] / "argo" / "templates"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.kubernetes("kubelet", "coredns"))
            item.add_marker(pytest.mark.node)
            item.add_marker(pytest.mark.exhaustive)


@pytest.fixture
def airflow(node: RealNode, postgres: Postgres, tmp_path: Path) -> AirflowHome:
    """Airflow in the node's network, with an empty database."""
    return AirflowHome(tmp_path, postgres.airflow(), node.command)


@pytest.fixture(scope="module")
def argo_node(node: RealNode) -> Iterator[RealNode]:
    """The node with Argo's controller beside ours."""
    with had_or_refused():
        argo.install(node)
    yield node
    argo.remove(node)


@pytest.fixture
def argo_world(argo_node: RealNode, world: NodeWorld) -> NodeWorld:
    """A namespace with the shipped templates and accounts."""
    world.kubectl("apply", "-k", TEMPLATES)
    return world
