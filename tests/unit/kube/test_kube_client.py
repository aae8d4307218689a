"""The client against a server that misbehaves as written down in each test."""

import asyncio
import contextlib
import dataclasses

import pytest
from scripted_api import answer, hang_up, make_object, make_status, refuse, scripted_api, stream

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, CredentialsError, EmptyNameError
from mxnet_operator.kube.resources import EVENTS, NODES, PODS, Resource

PATH = PODS.path("default")
POD = make_object("a", 1)


def test_paths_are_those_of_the_kubernetes_api():
    jobs = Resource("kubeflow.org", "v1", "mxjobs")
    assert jobs.path() == "/apis/kubeflow.org/v1/mxjobs"
    assert jobs.path("a", "b", "status") == "/apis/kubeflow.org/v1/namespaces/a/mxjobs/b/status"
    assert EVENTS.path("a") == "/api/v1/namespaces/a/events"
    assert NODES.path("ignored", "n") == "/api/v1/nodes/n"
    assert str(jobs) == "mxjobs.kubeflow.org"


@pytest.mark.parametrize("odd", ["a#b", "a?b=c", "a/b", "a b", "a%62", "a\t", "ä", "a\udcff", ";", "..a"])
async def test_an_odd_name_is_one_part_of_the_path_and_nothing_else_of_the_url(odd):
    async with scripted_api(answer(POD), answer(POD)) as api, api.client() as client:
        await client.get(PODS.path(odd, odd, "log"), {"x": "y"})
        await client.delete(PODS.path(odd, odd))
    sent = odd.encode(errors="replace").decode()
    assert [path for _, path, *_ in api.asked] == [
        f"/api/v1/namespaces/{sent}/pods/{sent}{end}" for end in ("/log", "")
    ]
    assert api.queries() == [{"x": "y"}, {}]


def test_no_path_is_made_of_an_empty_name():
    with pytest.raises(EmptyNameError, match="the name of one of pods can't be empty"):
        PODS.path("default", "")


async def test_a_refusal_carries_the_fields_of_its_status():
    async with scripted_api(refuse(409, "AlreadyExists", "it exists", name="x")) as api, api.client() as client:
        with pytest.raises(ApiError) as caught:
            await client.create(PATH, {})
        error = caught.value
    assert (error.code, error.reason, error.message, error.details) == (
        409,
        "AlreadyExists",
        "it exists",
        {"name": "x"},
    )


async def test_a_refusal_that_is_no_status_keeps_its_text():
    async def not_found(request):
        from aiohttp import web

        return web.Response(status=404, text="404 page not found\n")

    async with scripted_api(not_found) as api, api.client() as client:
        with pytest.raises(ApiError, match=r"^404 page not found$") as caught:
            await client.get("/apis/nothing")
        assert caught.value.code == 404


@pytest.mark.parametrize(
    "message",
    [
        "resourceVersion should not be set on objects to be created",
        "no preferred addresses found; known addresses: []",
    ],
)
def test_a_500_that_the_same_request_would_get_again_is_final(message):
    assert not ApiError(500, "", message).is_transient


def test_another_500_is_not_final():
    assert ApiError(500, "InternalError", "etcdserver: leader changed").is_transient


async def test_a_get_is_tried_again_when_the_connection_breaks():
    async with scripted_api(hang_up(), answer(POD)) as api, api.client() as client:
        assert await client.get(PATH) == POD


async def test_a_write_is_not_repeated_when_the_connection_breaks():
    async with scripted_api(hang_up(), answer({})) as api, api.client() as client:
        with pytest.raises(ApiUnavailable):
            await client.create(PATH, {})
        assert len(api.asked) == 1


async def test_a_write_is_repeated_after_the_time_that_an_overloaded_server_asks_for():
    overloaded = refuse(429, "TooManyRequests", headers={"Retry-After": "0"})
    async with scripted_api(overloaded, overloaded, answer(POD)) as api, api.client() as client:
        assert await client.create(PATH, {"a": 1}) == POD
        assert [body for *_, body in api.asked] == [b'{"a":1}'] * 3


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_a_write_that_may_have_been_carried_out_is_not_sent_again(code):
    failed = refuse(code, "InternalError", headers={"Retry-After": "0"})
    async with scripted_api(failed, answer(POD)) as api, api.client() as client:
        with pytest.raises(ApiError) as caught:
            await client.create(PATH, {})
        assert (caught.value.code, len(api.asked)) == (code, 1)


async def test_a_server_that_stays_overloaded_is_given_up():
    overloaded = refuse(429, "TooManyRequests", headers={"Retry-After": "0"})
    async with scripted_api(*[overloaded] * 9) as api, api.client() as client:
        with pytest.raises(ApiError) as caught:
            await client.create(PATH, {})
        assert (caught.value.code, caught.value.retry_after) == (429, 0.0)


async def test_credentials_are_loaded_anew_once_when_the_server_refuses_them():
    async with scripted_api(refuse(401, "Unauthorized"), answer(POD)) as api:
        fresh = api.credentials(lambda: {"Authorization": "Bearer new"})

        async def reload():
            return fresh

        stale = api.credentials(lambda: {"Authorization": "Bearer old"}, reload)
        async with Client(stale) as client:
            assert await client.create(PATH, {}) == POD
        assert [headers["Authorization"] for *_, headers, _ in api.asked] == ["Bearer old", "Bearer new"]


async def test_headers_are_asked_for_anew_every_half_minute():
    now, tokens = [1000.0], iter(("first", "second"))
    async with scripted_api(*[answer(POD)] * 3) as api:
        credentials = api.credentials(lambda: {"Authorization": f"Bearer {next(tokens)}"})
        async with Client(credentials, clock=lambda: now[0]) as client:
            for seconds in (0, 29, 1):
                now[0] += seconds
                await client.get(PATH)
        assert [headers["Authorization"] for *_, headers, _ in api.asked] == [
            "Bearer first",
            "Bearer first",
            "Bearer second",
        ]


async def test_a_refusal_of_fresh_credentials_reaches_the_caller():
    async with scripted_api(*[refuse(401, "Unauthorized")] * 3) as api, api.client() as client:
        with pytest.raises(ApiError) as caught:
            await client.get(PATH)
        assert caught.value.code == 401
        assert len(api.asked) == 2


async def test_credentials_that_cannot_be_reloaded_leave_the_servers_refusal():
    async def fail():
        raise CredentialsError("the file is gone")

    async with scripted_api(refuse(401, "Unauthorized")) as api:
        async with Client(dataclasses.replace(api.credentials(), reload=fail)) as client:
            with pytest.raises(ApiError) as caught:
                await client.get(PATH)
        assert caught.value.code == 401


async def test_warning_headers_are_collected():
    warned = answer(POD, headers={"Warning": '299 - "unknown field \\"spec.x\\"", 299 - "and y"'})
    async with scripted_api(warned) as api, api.client() as client:
        warnings = []
        await client.create_as(PATH, {}, dict, warnings=warnings)
        assert warnings == ['unknown field "spec.x"', "and y"]


async def test_a_list_of_many_pages_is_returned_as_one():
    first = {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [make_object("a", 1)]}
    second = {"metadata": {"resourceVersion": "7"}, "items": [make_object("b", 2)]}
    async with scripted_api(answer(first), answer(second)) as api, api.client() as client:
        whole = await client.list(PATH, {"labelSelector": "a=b"})
        assert [o["metadata"]["name"] for o in whole["items"]] == ["a", "b"]
        assert whole["metadata"] == {"resourceVersion": "7"}
        assert api.queries() == [
            {"limit": "500", "labelSelector": "a=b"},
            {"limit": "500", "labelSelector": "a=b", "continue": "more"},
        ]


async def test_lines_of_a_watch_come_whole_however_they_were_cut():
    long = b'{"long":"' + b"x" * 300_000 + b'"}\n'
    pieces = (b'{"a":', b"1}\n", long, b'{"b":2}\n{"c":3}\n{"d', b'":4}\n')
    async with scripted_api(stream(*pieces, then="end")) as api, api.client() as client:
        lines = [line async for line in client.watch(PATH)]
    assert lines == [b'{"a":1}', long[:-1], b'{"b":2}', b'{"c":3}', b'{"d":4}']


async def test_a_watch_without_a_byte_for_the_idle_time_counts_as_broken():
    async with scripted_api(stream(b'{"a":1}\n')) as api, api.client() as client:
        lines = client.watch(PATH, idle_timeout=0.05)
        async with contextlib.aclosing(lines):
            assert await anext(lines) == b'{"a":1}'
            with pytest.raises(ApiUnavailable):
                await anext(lines)


async def test_booleans_are_written_as_the_server_reads_them():
    async with scripted_api(answer(make_status(200, ""))) as api, api.client() as client:
        await client.get(PATH, {"follow": True, "tailLines": 2})
        assert api.queries() == [{"follow": "true", "tailLines": "2"}]


async def test_an_unreachable_server_is_named_with_the_cause_in_plain_words():
    async with scripted_api() as api:
        credentials = dataclasses.replace(api.credentials(), server="http://127.0.0.1:1")
        async with Client(credentials) as client:
            with pytest.raises(ApiUnavailable, match=r"^http://127\.0\.0\.1:1: Connection refused$"):
                await client.create(PATH, {})


@pytest.mark.parametrize(("asked_for", "requests"), [("30", 2), ("31", 1), ("3600", 1), ("31536000", 1)])
async def test_a_server_that_asks_for_more_than_half_a_minute_is_not_waited_for(monkeypatch, asked_for, requests):
    """Or it could stall whoever asks, for an hour: the caller has times of its own."""
    pauses, yields = [], asyncio.sleep

    async def sleep(seconds):
        if seconds:
            pauses.append(seconds)
        await yields(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    overloaded = refuse(429, "TooManyRequests", headers={"Retry-After": asked_for})
    async with scripted_api(overloaded, answer(POD)) as api, api.client() as client:
        if requests == 2:
            assert await client.create(PATH, {}) == POD
        else:
            with pytest.raises(ApiError) as caught:
                await client.create(PATH, {})
            assert caught.value.retry_after == float(asked_for)
        assert len(api.asked) == requests
    assert pauses == [30.0] * (requests - 1)
