"""A controller of several namespaces: one that can't be listed keeps none of the others from being run."""

import asyncio

import pytest
from apiserver_fixtures import running_server
from controller_fixtures import JOBS, PODS, ControllerWorld, RecordingClient, gang
from waiting import until

from mxnet_operator.controller import controller as controller_module
from mxnet_operator.controller.health import Health
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.kube.errors import ApiError

FORBIDDEN = ApiError(403, "Forbidden", "may not list in speech")
NOT_FOUND = ApiError(404, "NotFound", "the server could not find the requested resource")
REST_OF_SPEECH = PODS.replace("/default/", "/speech/")


class Refusing(RecordingClient):
    """A client whose lists of some namespaces are answered with an error, as long as there is one."""

    refused = ("speech",)
    error = None

    def _check(self, path):
        if self.error is not None and any(f"/namespaces/{each}/" in path for each in self.refused):
            raise self.error

    async def watch(self, path, *args, **kwargs):
        self._check(path)
        async for line in super().watch(path, *args, **kwargs):
            yield line

    async def get_as(self, path, *args, **kwargs):
        self._check(path)
        return await super().get_as(path, *args, **kwargs)


@pytest.fixture
async def w(tmp_path, monkeypatch):
    """Two namespaces, `default` and `speech`, and a controller that is not started."""
    monkeypatch.setattr(controller_module, "SYNC_SECONDS", 0.05)
    async with (
        running_server(tmp_path) as running,
        Refusing(load_credentials(str(running.kubeconfig))) as client,
    ):
        made = ControllerWorld(running.api, client, running.kubeconfig)
        (await made.api.post("/api/v1/namespaces", {"metadata": {"name": "speech"}})).ok()
        yield made
        await made.stop()


@pytest.mark.parametrize("error", [FORBIDDEN, NOT_FOUND], ids=lambda error: str(error.code))
async def test_the_jobs_of_a_namespace_are_run_though_another_can_not_be_listed(w, error):
    w.client.error = error
    await w.submit(gang("vision"))
    await w.submit(gang("waiting"), JOBS.replace("/default/", "/speech/"))
    await w.start(namespaces=["speech", "default"])
    await w.state("vision", "Created")
    assert await Health(w.controller, w.client).readiness() == ""
    assert (await w.api.get(REST_OF_SPEECH)).ok()["items"] == []
    await w.pods(5)
    w.client.error = None
    await w.api.until(REST_OF_SPEECH, lambda pods: len(pods) == 5)


async def test_while_no_namespace_can_be_listed_readiness_says_which_and_why(w):
    w.client.error, w.client.refused = FORBIDDEN, ("speech", "default")
    starting = asyncio.create_task(w.start(namespaces=["speech", "default"]))
    await until(lambda: w.controller is not None and w.controller.waits_for().count("may not list in speech") >= 2)
    words = await Health(w.controller, w.client).readiness()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    for namespace in ("speech", "default"):
        assert f"no list of mxjobs.kubeflow.org in namespace {namespace} yet: may not list in speech" in words


@pytest.mark.parametrize(("error", "hints"), [(FORBIDDEN, False), (NOT_FOUND, True)], ids=["403", "404"])
async def test_a_namespace_that_waits_is_named_with_its_trouble_and_the_crd_only_where_it_is_unknown(
    w, error, hints, caplog
):
    def said():
        lines = (each.getMessage() for each in caplog.records)
        return [line for line in lines if "still waiting" in line and "namespace speech" in line and str(error) in line]

    w.client.error = error
    await w.start(namespaces=["speech", "default"])
    await until(said)
    assert [line for line in said() if "is its CRD installed?" in line] == (said() if hints else [])
