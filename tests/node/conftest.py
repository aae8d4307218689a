"""The node of a test run, with the controller deployed on it as an administrator would, and Airflow and Argo beside it.

Each test of this folder is marked: it needs the node, whose images are built beforehand.
"""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from airflow_command import AirflowHome
from airflow_server import airflow_server
from deployment import MANIFESTS
from digits_gang import DigitsGang
from followed_gangs import AirflowGang, ArgoGang
from images_fixtures import say
from kubernetes_programs import AWAITED, MissingProgramError, await_build
from node_world import NodeWorld, had_or_refused
from postgres import Postgres
from real_node import argo
from real_node.images import ARGOEXEC, BUSYBOX, DIGITS, OPERATOR, PAUSE, WORKFLOW_CONTROLLER, archives
from real_node.node import FurtherNode, RealNode, running, why_not

TEMPLATES = Path(__file__).parents[2] / "argo" / "templates"
IMAGES = (PAUSE, BUSYBOX, DIGITS, OPERATOR)
_PREPARED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.kubernetes("kubelet", "coredns"))
            item.add_marker(pytest.mark.node)
            item.add_marker(pytest.mark.exhaustive)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Build the images before the first test of the node, not on a test's clock."""
    if item.get_closest_marker("node") and not item.session.stash.get(_PREPARED, False) and not why_not():
        item.session.stash[_PREPARED] = True
        markers = [marker for each in item.session.items for marker in each.iter_markers("node")]
        images = dict.fromkeys([*IMAGES, *(image for marker in markers for image in marker.args)])
        if os.environ.get(AWAITED):
            await_build([image.program for image in images if image.program])
        try:
            archives([*images], lambda names: say(item.config, f"Building the images {names}: minutes, the first time"))
        except MissingProgramError as error:  # the tests say it
            say(item.config, str(error))
    return (yield)


@pytest.fixture(scope="package")
def node() -> Iterator[RealNode]:
    """A node with the controller, whose Deployment is ready."""
    with had_or_refused():
        if reason := why_not():
            raise MissingProgramError(reason)
        with running(archives(IMAGES)) as started:
            _deploy(started)
            yield started


def _deploy(node: RealNode) -> None:
    node.kubectl("apply", "-k", MANIFESTS / "overlays" / "standalone")
    node.rolled_out("mxnet-operator", "mxnet-operator")


@pytest.fixture(scope="package")
def new_name() -> Callable[[], str]:
    """Names for namespaces, each a new one."""
    numbers = itertools.count(1)
    return lambda: f"test-{next(numbers)}"


@pytest.fixture
def world(node: RealNode, new_name: Callable[[], str]) -> Iterator[NodeWorld]:
    """A namespace for the test, which goes with all that is in it."""
    with _namespace(node, new_name()) as made:
        yield made


@contextlib.contextmanager
def _namespace(node: RealNode, name: str) -> Iterator[NodeWorld]:
    made = NodeWorld(node, name)
    node.kubectl("create", "namespace", name)
    node.wait("serviceaccount/default", "create", "--namespace", name)
    yield made
    node.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[RealNode, FurtherNode, FurtherNode]]:
    """Three nodes; the first has the control plane, and, at first, the controllers."""
    with had_or_refused(), contextlib.ExitStack() as held:
        if reason := why_not():
            raise MissingProgramError(reason)
        first = held.enter_context(
            running(archives((PAUSE, DIGITS, OPERATOR, ARGOEXEC, WORKFLOW_CONTROLLER)), further=2)
        )
        _deploy(first)
        argo.install(first)
        second, third = (held.enter_context(first.joined(number)) for number in (2, 3))
        yield first, second, third


@pytest.fixture
def gang(nodes: tuple[RealNode, FurtherNode, FurtherNode], new_name: Callable[[], str]) -> Iterator[DigitsGang]:
    """A gang that is yet to be created, in a namespace of the test's own on the three nodes."""
    with _namespace(nodes[0], new_name()) as made:
        yield DigitsGang(made)


@pytest.fixture
def followed(
    nodes: tuple[RealNode, FurtherNode, FurtherNode], new_name: Callable[[], str], postgres: Postgres, tmp_path: Path
) -> Iterator[tuple[AirflowGang, ArgoGang]]:
    """Two such gangs, which a deferred task of a whole Airflow and a step of Argo create and wait for."""
    first = nodes[0]
    with (
        _namespace(first, new_name()) as made,
        first.network(),
        airflow_server(tmp_path, Path(__file__).parent / "dags", postgres.airflow()) as server,
    ):
        made.kubectl("apply", "-k", TEMPLATES)
        server.connect("nodes", first.kubeconfig, made.namespace)
        yield AirflowGang(made, server), ArgoGang(made)


@pytest.fixture
def state(world: NodeWorld) -> Path:
    """A folder of the node, which pods may see."""
    folder = world.node.folder / world.namespace
    folder.mkdir()
    return folder


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
