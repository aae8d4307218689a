"""Streams of the local API server when things go badly: short memories, slow readers, a server that stops."""

import asyncio
import gc
import http.client
import ssl
import threading
import warnings
from contextlib import aclosing

import aiohttp
import pytest
from apiserver_fixtures import running_server
from apiserver_objects import CONFIG_MAPS, JOBS, PODS, config_map, mxjob, pod
from log_sources import ScriptedLogs
from served_requests import in_thread
from waiting import SECONDS

from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials
from mxnet_operator.local.apiserver import server
from mxnet_operator.local.apiserver import watch as watches
from mxnet_operator.local.apiserver.resources import CONFIG_MAPS as CONFIG_MAP_RESOURCE

PATH = CONFIG_MAPS.format("default")


@pytest.fixture
async def forgetful(tmp_path):
    """A server that remembers five changes of each resource."""
    async with running_server(tmp_path, history=5) as started:
        yield started.api


async def test_a_watch_from_before_the_history_is_told_so(forgetful):
    first = (await forgetful.post(PATH, config_map("m0"))).ok()["metadata"]["resourceVersion"]
    made = [(await forgetful.post(PATH, config_map(f"m{i}"))).ok() for i in range(1, 7)]
    async with forgetful.watch(PATH, resourceVersion=first) as stream:
        event = await stream.next()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await stream.next() is None
    async with forgetful.watch(PATH, resourceVersion=made[0]["metadata"]["resourceVersion"]) as stream:
        assert [event["object"]["metadata"]["name"] for event in await stream.take(5)] == ["m2", "m3", "m4", "m5", "m6"]


async def test_the_history_of_one_resource_does_not_push_out_that_of_another(forgetful):
    job = (await forgetful.post(JOBS.format("default"), mxjob("a"))).ok()
    for i in range(10):
        (await forgetful.post(PATH, config_map(f"m{i}"))).ok()
    async with forgetful.watch(JOBS.format("default"), resourceVersion=job["metadata"]["resourceVersion"]) as stream:
        (await forgetful.delete(f"{JOBS.format('default')}/a")).ok()
        assert (await stream.next())["type"] == "DELETED"


async def test_a_bookmark_tells_a_quiet_watch_how_far_it_is(api, monkeypatch):
    monkeypatch.setattr(watches, "BOOKMARK_SECONDS", 0.1)
    start = (await api.get(PATH)).ok()["metadata"]["resourceVersion"]
    other = (await api.post(JOBS.format("default"), mxjob("a"))).ok()["metadata"]["resourceVersion"]
    async with api.watch(PATH, resourceVersion=start, allowWatchBookmarks="true") as stream:
        bookmark = await stream.next()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["resourceVersion"] == other
    assert "annotations" not in bookmark["object"]["metadata"]


async def test_a_slow_reader_holds_up_nobody_and_starts_again(tmp_path):
    async with running_server(tmp_path, history=20) as started:
        api = started.api
        start = (await api.get(PATH)).ok()["metadata"]["resourceVersion"]
        async with api.watch(PATH, resourceVersion=start) as slow:
            for i in range(200):
                (await api.post(PATH, config_map(f"m{i}", x="y" * 200_000))).ok()
            kinds = []
            while event := await slow.next():
                kinds.append(event["type"])
        assert kinds[-1] == "ERROR"
        assert len(kinds) < 200


async def test_a_client_that_leaves_takes_its_watch_along(running):
    journal = running.server.store.storage.journal(CONFIG_MAP_RESOURCE)
    async with running.api.watch(PATH, resourceVersion="0", allowWatchBookmarks="true") as stream:
        await stream.next()
        assert len(journal._listeners) == 1
    async with asyncio.timeout(SECONDS):
        while journal._listeners:  # noqa: ASYNC110  # nothing says when the server has noticed
            await asyncio.sleep(0.01)


async def leave_a_watch(client, hold):
    async with aclosing(client.watch(PATH, {"resourceVersion": "0"})) as lines:
        await anext(lines)
        hold()


async def cancel_a_request(client, hold):
    await client.get(f"{PATH}/m0")  # makes the connection
    hold()
    request = asyncio.create_task(client.get(f"{PATH}/m0"))
    await asyncio.sleep(0)
    request.cancel()
    await asyncio.wait([request])
    assert request.cancelled()


@pytest.mark.parametrize("ends", [leave_a_watch, cancel_a_request])
async def test_a_client_whose_loop_ends_with_an_unread_answer_leaves_no_socket_open(running, ends):
    connected, held, left = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    (await running.api.post(PATH, config_map("m0"))).ok()

    def hold():
        loop.call_soon_threadsafe(connected.set)
        held.wait(SECONDS)

    async def ask_and_leave():
        async with Client(load_credentials(str(running.kubeconfig))) as client:
            await ends(client, hold)

    def run():
        asyncio.run(ask_and_leave())
        left.set()

    with warnings.catch_warnings(record=True, category=ResourceWarning) as told:
        warnings.simplefilter("always")
        client = asyncio.create_task(asyncio.to_thread(run))
        await connected.wait()
        held.set()
        left.wait(SECONDS)  # the server, on this loop, says no farewell meanwhile
        await client
        gc.collect()
    assert [str(each.message) for each in told] == []


def test_a_server_whose_loop_ends_leaves_no_socket_of_an_idle_client_open(tmp_path):
    with warnings.catch_warnings(record=True, category=ResourceWarning) as told:
        warnings.simplefilter("always")
        with in_thread(running_server(tmp_path)) as server:
            trust = ssl.create_default_context(cafile=str(server.certificate))
            idle = http.client.HTTPSConnection("127.0.0.1", server.port, context=trust)
            idle.request("GET", "/version")
            idle.getresponse().read()
        gc.collect()
        idle.close()
    assert [str(each.message) for each in told] == []


async def test_stopping_ends_watches_and_logs(running):
    logs = running.server.log_source = ScriptedLogs("one")
    (await running.api.post(PODS.format("default"), pod("p", node="n"))).ok()
    following = asyncio.create_task(running.api.get(f"{PODS.format('default')}/p/log", follow="true"))
    async with running.api.watch(PODS.format("default"), resourceVersion="0") as stream:
        assert (await stream.next())["type"] == "ADDED"
        async with asyncio.timeout(SECONDS):
            await logs.opened.wait()
        await running.server.stop()
        assert await stream.next() is None
    with pytest.raises(aiohttp.ClientError):
        await following


async def test_logs_are_asked_of_a_container_that_runs(running, api):
    running.server.log_source = ScriptedLogs("one")
    path = PODS.format("default")
    two = [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]
    (await api.post(path, pod("p", node="n", containers=two))).ok()
    answer = await api.get(f"{path}/p/log", container="b", follow="False", previous="False")
    assert (answer.text, answer.headers["Content-Type"]) == ("one\n", "text/plain")
    waiting = {"name": "b", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    waiting["state"] = {"waiting": {"reason": "ErrImagePull"}}
    (await api.merge(f"{path}/p/status", {"status": {"containerStatuses": [waiting]}})).ok()
    refused = await api.get(f"{path}/p/log", container="b")
    assert refused.body["message"] == 'container "b" in pod "p" is waiting to start: ErrImagePull'


async def test_logs_need_a_kubelet(api):
    (await api.post(PODS.format("default"), pod("p", node="n"))).ok()
    assert (await api.get(f"{PODS.format('default')}/p/log")).code == 500


async def test_a_log_that_breaks_off_is_no_complete_answer(running, api):
    class Broken:
        async def open(self, pod_uid, request):
            yield b"one\n"
            raise OSError("the disk is gone")

    running.server.log_source = Broken()
    (await api.post(PODS.format("default"), pod("p", node="n"))).ok()
    with pytest.raises(aiohttp.ClientError):
        await api.get(f"{PODS.format('default')}/p/log")


async def test_a_client_that_leaves_while_it_is_answered_is_no_error(api, caplog, monkeypatch):
    def gone(*_):
        raise ConnectionResetError("Cannot write to closing transport")  # as aiohttp says it of a response

    monkeypatch.setattr(server, "_json", gone)
    with pytest.raises(aiohttp.ClientError):
        await api.get(PATH)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
