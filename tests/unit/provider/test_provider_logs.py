"""Reading a log over broken connections: every line once, and none of it can hurt the task."""

import asyncio

import pytest

from mxnet_operator.api import names
from mxnet_operator.client import outage
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.readers.log_lines import LogCursor
from mxnet_provider import replica_logs
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.replica_logs import ReplicaLogs

T = "2026-11-21T12:00:0"


def stamped(*lines):
    return [line.encode() for line in lines]


def take(cursor, lines):
    return [text for line in lines if (text := cursor.take(line)) is not None]


def test_timestamps_are_taken_off():
    assert take(LogCursor(), stamped(f"{T}1.5Z one", f"{T}1.5+02:00 two", f"{T}2Z ", f"{T}2Z")) == [
        "one",
        "two",
        "",
        "",
    ]


def test_bytes_that_are_no_text_are_replaced():
    assert LogCursor().take(f"{T}1Z caf".encode() + b"\xe9\r") == "caf\ufffd"


def test_a_stream_may_break_again_before_it_brings_anything_new():
    cursor = LogCursor()
    cursor.reconnect()
    take(cursor, stamped(f"{T}1Z a", f"{T}1Z b"))
    cursor.reconnect()
    assert take(cursor, stamped(f"{T}1Z a")) == []
    cursor.reconnect()
    assert take(cursor, stamped(f"{T}1Z a", f"{T}1Z b", f"{T}1Z c")) == ["c"]


class ScriptedLog:
    """A log whose streams are given beforehand: lists of chunks, where an exception breaks the stream."""

    def __init__(self, *streams):
        self.streams = list(streams)
        self.asked = []
        self.listed = 0
        self.shown = []
        self.warnings = []
        self.api = self

    async def replica_pods(self, _ref):
        self.listed += 1
        return [self.pod()]

    async def find(self, _path, *, shape):
        return self.pod(ended=self.ended())

    async def stream(self, _path, params, *, idle_timeout):
        self.asked.append(params.get("sinceTime"))
        for chunk in self.streams.pop(0):
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    @staticmethod
    def pod(*, ended=False):
        labels = {names.LABEL_REPLICA_TYPE: "worker", names.LABEL_REPLICA_INDEX: "0"}
        metadata = {"name": "digits-worker-0", "namespace": "default", "uid": "p", "labels": labels}
        state = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
        status = {"phase": "Succeeded" if ended else "Running"}
        return {"metadata": metadata, "status": {**status, "containerStatuses": [{"name": "mxnet", "state": state}]}}

    def ended(self):
        return len(self.streams) <= 1

    def info(self, text, *values):
        self.shown.append((text % values).removeprefix("[worker-0] "))

    def warning(self, text, *values):
        self.warnings.append(text % values)

    async def follow(self, monkeypatch):
        """The follower of the one pod, when it has ended."""
        monkeypatch.setattr(outage.Retries, "next_pause", lambda *_: 0.0)
        ref, job = JobRef(name="digits", namespace="default", uid="u"), {"status": {"state": "Running"}}
        async with ReplicaLogs(self, ref, ["worker-0"], self, Metrics({}, print).read, follows=True) as logs:
            await logs.poll(job)
            (follower,) = logs._followers.values()
            await asyncio.wait({follower.task})
            return follower


async def test_a_follower_resumes_until_a_stream_opened_after_the_end_is_through(monkeypatch):
    log = ScriptedLog(
        [f"{T}1Z a\n{T}1Z b\n".encode(), ApiUnavailable("reset")],
        [f"{T}1Z a\n{T}1Z b\n{T}2Z c\n".encode()],
        [f"{T}2Z c\n{T}3Z d\n".encode()],
    )
    assert (await log.follow(monkeypatch)).is_whole
    assert log.shown == ["a", "b", "c", "d"]
    assert log.asked == [None, f"{T}1Z", f"{T}2Z"]
    assert log.warnings == []


async def test_a_stream_that_breaks_after_the_end_is_read_again(monkeypatch):
    log = ScriptedLog([f"{T}1Z a\n".encode(), ApiUnavailable("reset")], [f"{T}1Z a\n{T}2Z b".encode()])
    log.ended = lambda: True
    assert (await log.follow(monkeypatch)).is_whole
    assert log.shown == ["a", "b"]


async def test_a_log_that_cannot_be_read_is_tried_again_and_said_so_once(monkeypatch):
    dead_node = ApiError(500, "InternalError", "dial tcp: connection refused")
    log = ScriptedLog(*([[dead_node]] * 12), [f"{T}1Z a\n".encode()])
    assert (await log.follow(monkeypatch)).is_whole
    assert log.shown == ["a"]
    assert log.warnings == [f"[worker-0] the log of digits-worker-0 can't be read for now: {dead_node}"]


async def test_a_log_that_may_not_be_read_is_given_up(monkeypatch):
    log = ScriptedLog([ApiError(403, "Forbidden", "pods/log is forbidden")])
    assert not (await log.follow(monkeypatch)).is_whole
    assert log.warnings == ["[worker-0] gave up reading the log: pods/log is forbidden"]


async def test_breaking_streams_that_bring_lines_are_never_given_up(monkeypatch):
    streams = [[f"{T}1.{i:02}Z {i}\n".encode(), ApiUnavailable("reset")] for i in range(30)]
    log = ScriptedLog(*streams, [f"{T}2Z end\n".encode()])
    assert (await log.follow(monkeypatch)).is_whole
    assert len(log.shown) == 31


async def test_what_a_pod_writes_that_takes_another_s_place_is_shown_from_its_beginning(monkeypatch):
    """Its node's clock may be behind that of the first."""
    log = ScriptedLog([f"{T}5Z first\n".encode()], [f"{T}1Z second\n".encode()])
    monkeypatch.setattr(outage.Retries, "next_pause", lambda *_: 0.0)
    log.ended = lambda: True
    ref = JobRef(name="digits", namespace="default", uid="u")
    async with ReplicaLogs(log, ref, ["worker-0"], log, Metrics({}, print).read, follows=True) as logs:
        await logs.poll({"status": {"state": "Running"}})
        await logs._followers["worker-0"].task
        again = {**log.pod(ended=True), "metadata": {**log.pod()["metadata"], "uid": "another"}}
        monkeypatch.setattr(log, "pod", lambda **_: again)
        await logs.poll({"status": {"state": "Running", "restarts": 1}})
        await logs._followers["worker-0"].task
    assert log.shown == ["first", "second"]


LOSES_PODS = {"spec": {"runPolicy": {"cleanPodPolicy": "All"}}, "status": {"state": "Running"}}


@pytest.mark.parametrize("most", [0, 1])
async def test_a_trigger_follows_a_log_that_goes_with_its_job_unless_too_many_are(monkeypatch, most):
    """The only line comes after the last poll, as the job's end deletes the pod."""
    ends = asyncio.Event()
    log, ref = ScriptedLog([]), JobRef(name="digits", namespace="default", uid="u")

    async def stream(_path, params, *, idle_timeout):
        if params.get("follow"):
            await ends.wait()
        if ends.is_set():
            yield f"{T}1Z the last line\n".encode()

    monkeypatch.setattr(replica_logs, "_MOST_FOLLOWED", most)
    monkeypatch.setattr(outage.Retries, "next_pause", lambda *_: 0.0)
    monkeypatch.setattr(log, "stream", stream)
    log.ended = ends.is_set
    async with ReplicaLogs(log, ref, ["worker-0"], log, Metrics({}, print).read) as logs:
        await logs.poll(LOSES_PODS)
        await asyncio.sleep(0)
        ends.set()
        await logs.drain([])
    assert log.shown == ["the last line"] * most


async def test_a_follower_that_is_ended_leaves_no_line_behind_its_cursor():
    log, ref = ScriptedLog(), JobRef(name="digits", namespace="default", uid="u")
    logs = ReplicaLogs(log, ref, ["worker-0"], log, Metrics({}, print).read, follows=True)
    emitting = asyncio.create_task(logs._emit(str(number) for number in range(100)))
    await asyncio.sleep(0)
    assert 0 < len(log.shown) < 100
    emitting.cancel()
    await asyncio.wait({emitting})
    assert log.shown == [str(number) for number in range(100)]


async def test_a_log_that_is_read_on_by_another_has_each_line_once():
    numbers = [str(number) for number in range(1000)]
    whole = "".join(f"{T}1.{int(number):03}Z {number}\n" for number in numbers).encode()
    log, ref = ScriptedLog([whole], [whole]), JobRef(name="digits", namespace="default", uid="u")
    async with ReplicaLogs(log, ref, ["worker-0"], log, len, follows=True) as first:
        await first.poll({"status": {"state": "Running"}})
        for _ in range(5):
            await asyncio.sleep(0)
    assert 0 < len(log.shown) < 1000
    await ReplicaLogs(log, ref, ["worker-0"], log, len, cursors=first.positions()).drain([log.pod(ended=True)])
    assert log.shown == numbers


async def test_a_pod_that_a_restart_deleted_is_no_fault_and_the_next_is_looked_for():
    deleted = ApiError(404, "NotFound", 'pods "digits-worker-0" not found')
    log = ScriptedLog([b"2026-11-21T12:00:01Z first\n"], [deleted], [b"2026-11-21T12:00:09Z second\n"])
    ref = JobRef(name="digits", namespace="default", uid="u")
    async with ReplicaLogs(log, ref, ["worker-0"], log, len) as logs:
        for _ in range(3):
            await logs.poll({"status": {"state": "Running"}})
    assert (log.shown, log.warnings, log.listed) == (["first", "second"], [], 2)
