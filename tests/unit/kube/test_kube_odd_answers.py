"""Every answer that isn't what was asked for is an error of the API to whoever asked, whatever it looks like."""

import pytest
from odd_answers import ODD
from scripted_api import answer, make_object, scripted_api

from mxnet_operator.kube import transport
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.discovery import is_served
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, KubeError
from mxnet_operator.kube.lease import LeaderElector
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import PODS

PATH = PODS.path("default")


async def watch(client):
    reflector = Reflector(client, PODS, Indexer(), bytes, lambda old, new: None)
    await reflector._attempt()


async def list_in_pages(client):
    reflector = Reflector(client, PODS, Indexer(), bytes, lambda old, new: None)
    await reflector._list()


async def read_a_log(client):
    async for _ in client.stream(f"{PATH}/a/log"):
        pass


VERBS = {
    "get": lambda client: client.get(f"{PATH}/a"),
    "list": lambda client: client.list(PATH),
    "create": lambda client: client.create(PATH, make_object("a", 0)),
    "patch": lambda client: client.patch(f"{PATH}/a", {}),
    "replace": lambda client: client.replace(f"{PATH}/a", {}),
    "delete": lambda client: client.delete(f"{PATH}/a"),
    "elect": lambda client: LeaderElector(client, "default", "l")._attempt(),
    "discovery": lambda client: is_served(client, PODS),
    "watch": watch,
    "pages": list_in_pages,
    "log": read_a_log,
}
BELIEVED = {
    ("get", "200 a Status"),
    ("delete", "200 a Status"),  # deletions are answered so
    ("get", "200 a list without a version"),
    ("delete", "200 a list without a version"),
    ("get", "200 items null"),
    ("delete", "200 items null"),
    ("elect", "200 a Status"),
}
"""What looks like an answer: an object without a name is one to a client that doesn't know the resource."""


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(transport, "_pause", lambda error, failures: 0.0)


@pytest.mark.parametrize("verb", VERBS)
async def test_an_odd_answer_is_an_error_of_the_api(at_once, verb):
    for odd, said in ODD.items():
        async with scripted_api(*[said] * 9) as api, api.client() as client:
            try:
                await VERBS[verb](client)
            except KubeError as error:
                assert isinstance(error, ApiError | ApiUnavailable) or verb == "watch", (odd, error)
                assert len(str(error)) < 1500, odd
            else:
                is_text = verb == "log" and odd.startswith("20")
                assert (verb, odd) in BELIEVED or is_text


async def test_the_error_names_what_was_asked_and_quotes_the_answer(at_once):
    async with scripted_api(*[ODD["200 HTML"]] * 9) as api, api.client() as client:
        with pytest.raises(ApiUnavailable) as caught:
            await client.list(PATH)
    said = str(caught.value)
    assert f"{api.url} answered GET {PATH} with 200 and what a Kubernetes API server doesn't send" in said
    assert "<!doctype html>" in said


async def test_an_odd_answer_to_a_read_is_asked_for_again():
    good = answer(make_object("a", 1))
    async with scripted_api(ODD["200 null"], good) as api, api.client() as client:
        assert (await client.get(f"{PATH}/a"))["metadata"]["name"] == "a"
        assert len(api.asked) == 2


async def test_a_write_with_an_odd_answer_is_not_repeated():
    async with scripted_api(ODD["200 null"]) as api, api.client() as client:
        with pytest.raises(ApiUnavailable):
            await client.create(PATH, {})
        assert len(api.asked) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00", 0.0),
    ],
)
def test_what_a_server_asks_to_wait_is_a_number_or_a_date(header, seconds):
    assert transport._retry_after(header) == seconds
