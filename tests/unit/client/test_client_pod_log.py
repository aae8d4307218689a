"""The rest of a log of a job that has ended: all of it, however slowly it is taken, but nothing is awaited in vain."""

import asyncio
import contextlib

import pytest
from moved_time import run_in_moved_time
from scripted_api import scripted_api, stream
from waiting import MOMENT

from mxnet_operator.client import outage, pod_log
from mxnet_operator.client.pod_log import LogFollower, PodLog, log_lines
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, SilentConnectionError

UID, STAMP = "of-the-job", "2026-01-01T00:00:00.%09dZ "
JOB = {"metadata": {"name": "a", "namespace": "default", "uid": UID}}


def pod(**state):
    return {
        "metadata": {
            "name": "a-worker-0",
            "uid": "of-the-pod",
            "resourceVersion": "1",
            "labels": {"training.kubeflow.org/job-name": "a"},
            "ownerReferences": [{"uid": UID, "controller": True}],
        },
        "status": {"containerStatuses": [{"name": "mxnet", "state": state}]},
    }


class Server:
    """Has one pod and its log, which ends after `lines` lines or (None) never; after `stalls_at` lines none comes."""

    def __init__(self, lines, stalls_at=None, **state):
        self.lines, self.stalls_at, self.pod = lines, stalls_at, pod(**state)
        self.reading = asyncio.Event()

    async def list(self, path, params):
        await asyncio.sleep(0)  # as an answer takes its time, in which the caller may be cancelled
        return {"metadata": {"resourceVersion": "1"}, "items": [self.pod]}

    async def watch(self, path, params, **options):
        await asyncio.Event().wait()
        yield b""

    async def find(self, path, *, shape=None):
        await asyncio.sleep(0)
        return self.pod

    async def stream(self, path, params, *, idle_timeout=None):
        self.reading.set()
        await asyncio.sleep(0)
        number = 0
        while number != self.lines:
            if number == self.stalls_at:
                await asyncio.Event().wait()
            yield f"{STAMP % number}line {number}\n".encode()
            number += 1
            await asyncio.sleep(0)


def skewing(monkeypatch):
    """A function that moves the clock of the event loop on."""
    loop, skewed = asyncio.get_running_loop(), [0.0]
    exact = loop.time
    monkeypatch.setattr(loop, "time", lambda: exact() + skewed[0])

    def later(seconds):
        skewed[0] += seconds

    return later


@pytest.fixture
def brief(monkeypatch):
    monkeypatch.setattr(pod_log, "_LOOK", 0.001, raising=False)


ENDED = {"terminated": {"exitCode": 0}}
RUNS = {"running": {}}


async def finished(server, on_line):
    follower = LogFollower(server, JOB, "worker-0", on_line)
    follower.start()
    await server.reading.wait()
    return await follower.finish()


@pytest.mark.parametrize(("lines", "seconds"), [(70, 4), (9, 30)])
async def test_all_lines_come_to_a_taker_who_is_slow(monkeypatch, lines, seconds):
    taken, skew = [], skewing(monkeypatch)

    def take_slowly(line):
        taken.append(line)
        skew(seconds)

    assert await finished(Server(lines, **ENDED), take_slowly)
    assert taken == [f"line {number}\n" for number in range(lines)]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("stalls_at", [0, 20])
async def test_lines_that_do_not_come_are_given_up_and_missed(stalls_at):
    taken = []
    assert not await finished(Server(100, stalls_at, **ENDED), taken.append)
    assert len(taken) == stalls_at


@pytest.mark.usefixtures("brief")
async def test_a_pod_that_goes_on_to_write_is_left():
    taken = []
    assert not await finished(Server(None, **RUNS), taken.append)
    assert taken


@pytest.mark.parametrize("turns", range(30))
async def test_each_line_comes_once_whenever_the_job_is_found_to_have_ended(turns):
    taken = []
    follower = LogFollower(Server(3, **ENDED), JOB, "worker-0", taken.append)
    follower.start()
    for _ in range(turns):
        await asyncio.sleep(0)
    assert await follower.finish()
    assert taken == [f"line {number}\n" for number in range(3)]


async def test_a_log_that_nobody_has_begun_to_read_is_read():
    taken = []
    assert await LogFollower(Server(3, **ENDED), JOB, "worker-0", taken.append).finish()
    assert len(taken) == 3


class Reports(Server):
    """Has a log whose first line carries a part of a long result."""

    async def stream(self, path, params, *, idle_timeout=None):
        self.reading.set()
        yield f"{STAMP % 1}mxjob-result {'0' * 64} 1/1 QUJD\n{STAMP % 2}a line\n".encode()


async def test_parts_of_a_long_result_are_not_shown():
    taken = []
    assert await finished(Reports(1, **ENDED), taken.append)
    so_far = [line async for line in log_lines(Reports(1, **ENDED), "default", "a-worker-0")]
    assert (taken, so_far) == (["a line\n"], ["a line\n"])


class Replaced(Server):
    """Has a pod whose log ends as another takes its name, and that one's log, which has an end of its own."""

    def __init__(self):
        super().__init__(2, **RUNS)
        self.asked = []
        self.replaced = asyncio.Event()

    async def watch(self, path, params, **options):
        await self.replaced.wait()
        return
        yield b""

    async def stream(self, path, params, *, idle_timeout=None):
        uid = self.pod["metadata"]["uid"]
        self.asked.append((uid, params))
        await asyncio.sleep(0)
        for number in range(2):
            stamp = STAMP % (number + (10 if uid == "the-second" else 0))
            yield f"{stamp}{uid} {number}\n".encode()  # all within one second, which is what `sinceTime` can say
        if uid == "the-second":
            self.pod["status"] = pod(**ENDED)["status"]
        else:
            self.pod = pod(**RUNS)
            self.pod["metadata"] |= {"uid": "the-second", "resourceVersion": "2"}
            self.replaced.set()


async def test_each_line_of_a_pod_that_takes_the_name_of_another_comes_once_and_the_last_ones_alone_of_the_first():
    taken, server = [], Replaced()
    follower = LogFollower(server, JOB, "worker-0", taken.append, tail=5)
    follower.start()
    async with asyncio.timeout(MOMENT):
        while len(taken) < 4:  # noqa: ASYNC110 - it tells of lines alone
            await asyncio.sleep(0.01)
    assert await follower.finish()
    assert taken == ["of-the-pod 0\n", "of-the-pod 1\n", "the-second 0\n", "the-second 1\n"]
    first, *others = [params.get("tailLines") for _, params in server.asked]
    assert (first, set(others)) == (5, {None})


class Cut(Server):
    """Has a pod whose log's first stream ends within a line, and whose last line has no end."""

    def __init__(self):
        super().__init__(2, **RUNS)
        self.streams = 0

    async def stream(self, path, params, *, idle_timeout=None):
        self.streams += 1
        first, second = f"{STAMP % 1}whole\n", f"{STAMP % 2}without an end"
        yield (first + (second[:-8] if self.streams == 1 else second)).encode()
        self.pod["status"] = pod(**ENDED)["status"]


async def test_half_a_line_is_not_shown_and_a_last_line_without_an_end_is():
    taken, server = [], Cut()
    follower = LogFollower(server, JOB, "worker-0", taken.append)
    follower.start()
    async with asyncio.timeout(MOMENT):
        while len(taken) < 2:  # noqa: ASYNC110 - it tells of lines alone
            await asyncio.sleep(0.01)
    assert await follower.finish()
    assert taken == ["whole\n", "without an end"]


class Breaking(Server):
    """Has a log whose streams end as they are given: by an error, or None."""

    def __init__(self, *ends):
        super().__init__(4, **ENDED)
        self.ends, self.asked = list(ends), []

    async def stream(self, path, params, *, idle_timeout=None):
        self.asked.append((params.get("sinceTime"), params.get("tailLines")))
        end = self.ends.pop(0)
        for number in range(4 if end is None else 2):
            yield f"{STAMP % number}line {number}\n".encode()
        if end is not None:
            raise end


@pytest.mark.parametrize(
    ("ends", "outcome", "lines"),
    [
        ([ApiUnavailable("reset"), ApiError(503, "", "<html>"), None], None, 4),
        ([ApiError(500, "InternalError", "dial tcp: no route to host")], ApiError, 2),
        ([ApiError(403, "Forbidden", "pods/log is forbidden")], ApiError, 2),
        ([ApiError(404, "NotFound", "gone")], None, 2),
    ],
    ids=["an outage", "a dead node", "no right", "a pod that goes"],
)
async def test_a_log_of_the_past_goes_on_after_an_outage_and_ends_with_other_errors(monkeypatch, ends, outcome, lines):
    monkeypatch.setattr(outage.Retries, "next_pause", lambda *_: 0.0)
    server, taken = Breaking(*ends), []
    with contextlib.nullcontext() if outcome is None else pytest.raises(outcome):
        async for line in log_lines(server, "default", "a-worker-0", tail=4):
            taken.append(line)  # noqa: PERF401 - an error comes after some
    assert taken == [f"line {number}\n" for number in range(lines)]
    assert server.asked == [(None, 4), *[("2026-01-01T00:00:00Z", None)] * (len(ends) - 1)]


class Breaks:
    """Client of a log whose streams break after a line each, and whose pod is found at every second look."""

    def __init__(self):
        self.streams = self.looks = 0

    async def stream(self, path, params, *, idle_timeout):
        self.streams += 1
        yield f"{STAMP % self.streams}line {self.streams}\n".encode()
        if self.streams < 40:
            raise ApiUnavailable("reset")

    async def find(self, path, *, shape):
        self.looks += 1
        if self.looks % 2:
            raise ApiUnavailable("refused")
        return pod(**(RUNS if self.streams < 39 else ENDED))


def test_a_log_whose_streams_break_is_read_on_as_soon_after_the_last_as_after_the_first(monkeypatch):
    async def read():
        begun = asyncio.get_running_loop().time()
        lines = [line async for line in PodLog(Breaks(), "default", "a-worker-0", "of-the-pod").follow()]
        return lines, asyncio.get_running_loop().time() - begun

    lines, seconds = run_in_moved_time(read(), monkeypatch)
    assert lines == [f"line {number}" for number in range(1, 41)]
    assert seconds < 60


@pytest.mark.parametrize("reader", ["log_lines", "lines"])
def test_the_reading_of_a_log_that_does_not_come_fails_within_a_minute_and_a_half(monkeypatch, reader):
    async def read():
        async with scripted_api(stream(b""), stream(b""), stream(b"")) as api, api.client() as client:
            if reader == "log_lines":  # which asks once more: its connection may have been dead
                lines = log_lines(client, "default", "a-worker-0")
            else:
                lines = PodLog(client, "default", "a-worker-0").lines()
            async with asyncio.timeout(90):
                with pytest.raises(SilentConnectionError):
                    await anext(lines)

    run_in_moved_time(read(), monkeypatch)
