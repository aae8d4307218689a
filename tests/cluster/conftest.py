"""Fixtures of the tests that need a real Kubernetes; each is marked `kubernetes`."""

import pytest
from control_plane_fixtures import new_namespace, real_api
from controller_fixtures import ControllerWorld, RecordingClient

from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.plan import Policy


@pytest.fixture
async def api(kubernetes):
    """The administrator's access to the real API."""
    async with real_api(kubernetes) as real:
        yield real


@pytest.fixture
async def namespace(api):
    """A namespace of the test's own, in which pods can be created."""
    async with new_namespace(api, settled=True) as name:
        yield name


@pytest.fixture
def policy():
    """The times of the controller; a module that can't wait for them has its own."""
    return Policy()


@pytest.fixture
async def world(kubernetes, api, namespace, policy):
    """The namespace with a controller at work."""
    kubeconfig = kubernetes.kubeconfig("controller")
    async with RecordingClient(load_credentials(str(kubeconfig))) as client:
        made = ControllerWorld(api, client, kubeconfig, namespace)
        await made.start(policy=policy)
        yield made
        await made.stop()
