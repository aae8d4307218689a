"""What the probes hear: ready means synced and the API server answers, alive means that a restart would not help."""

import pytest
from apiserver_fixtures import running_server
from controller_fixtures import RecordingClient, world

from mxnet_operator.controller.controller import Controller
from mxnet_operator.controller.endpoints import Address
from mxnet_operator.controller.health import SILENCE_SECONDS, Health
from mxnet_operator.kube.answers import SILENCE_SECONDS as IDLE_SECONDS
from mxnet_operator.kube.credentials import load_credentials


async def test_it_is_ready_once_its_caches_are_filled(tmp_path):
    async with world(tmp_path, start=False) as w:
        before = await Health(Controller(w.client), w.client).readiness()
        assert before.startswith("no list of mxjobs.kubeflow.org yet")
        await w.start()
        assert await Health(w.controller, w.client).readiness() == ""


async def test_an_api_server_that_is_away_fails_readiness_and_not_liveness(tmp_path):
    async with world(tmp_path) as w:
        health = Health(w.controller, w.client)
        await w.running.server.stop()
        said = await health.readiness()
        assert "can't be reached" in said or "did not answer" in said
        assert await health.liveness() == ""


async def test_an_api_server_that_refuses_us_is_reachable(tmp_path):
    async with world(tmp_path) as w, running_server(tmp_path) as other:
        other.server._token = b"another"
        async with RecordingClient(load_credentials(str(other.kubeconfig))) as client:
            assert await Health(w.controller, client).readiness() == ""


async def test_a_watch_that_stays_silent_fails_liveness(tmp_path):
    async with world(tmp_path) as w:
        health = Health(w.controller, w.client)
        (pods,) = (each for each in w.controller.reflectors if str(each.resource) == "pods")
        for ahead, is_silent in ((SILENCE_SECONDS - 1, False), (SILENCE_SECONDS + 1, True)):
            pods._clock = lambda ahead=ahead: pods._silent_since + ahead
            wrong = await health.liveness()
            assert wrong == (
                f"the watch of pods is connected and has been silent for {ahead:.0f} s" if is_silent else ""
            )


async def test_a_worker_that_does_not_come_back_fails_liveness(tmp_path):
    async with world(tmp_path) as w:
        health = Health(w.controller, w.client, stuck=0)
        assert await health.liveness() == ""
        w.controller.queue._working["default/digits"] = 0.0
        assert "a worker has had the same job for" in await health.liveness()


def test_a_watch_is_given_time_to_be_left_and_connected_anew():
    assert SILENCE_SECONDS >= 2 * IDLE_SECONDS


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", Address(None, 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:8080", Address("::1", 8080)),
        ("localhost:80", Address("localhost", 80)),
        ("0", None),
    ],
)
def test_addresses_are_written_as_go_writes_them(text, address):
    assert Address.parse(text) == address
    assert address is None or str(address) == text


@pytest.mark.parametrize("text", ["", "8080", "host", ":port", ":70000", "::1:80"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="is no address"):
        Address.parse(text)
