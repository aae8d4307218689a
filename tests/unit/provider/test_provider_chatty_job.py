"""A job that writes more than anybody reads: its figures, its last lines, and the loop that others share."""

import asyncio
import itertools

import pytest

from mxnet_operator.api import names
from mxnet_operator.client.job_client import JobRef
from mxnet_provider import replica_logs
from mxnet_provider.replica_logs import ReplicaLogs

REF = JobRef(name="digits", namespace="default", uid="1")
JOB = {"metadata": {"name": "digits", "namespace": "default", "uid": "1"}, "status": {"state": "Running"}}
POD = {
    "metadata": {
        "name": "digits-worker-0",
        "uid": "p",
        "labels": {names.LABEL_REPLICA_TYPE: "worker", names.LABEL_REPLICA_INDEX: "0"},
    },
    "status": {"containerStatuses": [{"name": "mxnet", "state": {"terminated": {"exitCode": 0}}}]},
}
CHUNK = 64 * 1024


def stamped(number, text):
    return b"2026-11-21T12:%02d:%02d.%09dZ " % (number // 60_000 % 60, number // 1000 % 60, number % 1000) + text


class Hook:
    """The log of one pod, as far as it has been written; hangs after so many bytes of a stream, if asked to."""

    def __init__(self, lines, hangs_after=None):
        self.lines = lines
        self.hangs_after = hangs_after
        self.tails = []
        self.api = self

    async def replica_pods(self, ref):
        return [POD]

    async def stream(self, path, params, *, idle_timeout):
        since, tail_lines = params.get("sinceTime"), params.get("tailLines")
        self.tails.append(tail_lines)
        lines = self.lines[-tail_lines:] if tail_lines else self.lines
        log = b"".join(line + b"\n" for line in lines if since is None or line[:20] >= since[:19].encode())
        for start in range(0, len(log), CHUNK):
            if self.hangs_after is not None and not tail_lines and start >= self.hangs_after:
                await asyncio.Event().wait()
            yield log[start : start + CHUNK]


class Log:
    """A task's log that counts."""

    def __init__(self):
        self.shown = []
        self.warnings = []

    def info(self, text, *arguments):
        self.shown.append(text % arguments)

    def warning(self, text, *arguments):
        self.warnings.append(text % arguments)


class Figures:
    """What reads the lines for their figures."""

    def __init__(self):
        self.read_lines = 0

    def read(self, line):
        self.read_lines += 1


class PollerWorld:
    def __init__(self, lines, **options):
        self.hook, self.log, self.figures, self.now = Hook(lines, **options), Log(), Figures(), 0.0
        self.poller = ReplicaLogs(
            self.hook, REF, ["worker-0"], self.log, self.figures.read, cursors={}, clock=lambda: self.now
        )

    def texts(self):
        return [line.removeprefix("[worker-0] ") for line in self.log.shown]


def lines(count, start=0):
    return [stamped(number, b"line %d" % number) for number in range(start, start + count)]


@pytest.mark.exhaustive
async def test_of_two_hundred_thousand_lines_the_last_thousand_are_shown_and_all_are_read_for_figures():
    world = PollerWorld(lines(200_000))
    await world.poller.drain([POD])
    shown = world.texts()
    assert world.figures.read_lines == 200_000
    assert shown[:1000] == [f"line {number}" for number in range(1000)]
    assert shown[1000].startswith("... 198000 lines are left out here")
    assert shown[1000].endswith("kubectl logs -n default digits-worker-0")
    assert shown[1001:] == [f"line {number}" for number in range(199_000, 200_000)]
    assert (world.log.warnings, world.poller.complete) == ([], {"worker-0"})


async def test_a_line_of_many_mebibytes_without_an_end_is_shown_in_part():
    world = PollerWorld([stamped(0, b"x" * (25 * 1024 * 1024)), stamped(1, b"the end")])
    await world.poller.drain([POD])
    assert world.texts()[-1] == "the end"
    assert sum(map(len, world.log.shown)) < 3 * 1024 * 1024
    assert any("lines are left out here" in line for line in world.log.shown)


async def test_a_look_goes_on_where_a_second_holds_more_than_a_look_reads(monkeypatch):
    monkeypatch.setattr(replica_logs, "_POLL_BYTES", 1000)
    world = PollerWorld(lines(900))  # all in one second: each stream begins with the second
    for _ in range(60):
        await world.poller.poll(JOB)
    assert world.figures.read_lines == 900


async def test_where_reading_all_takes_too_long_the_last_lines_are_shown_and_the_log_says_so(monkeypatch):
    monkeypatch.setattr(replica_logs, "_DRAIN_SECONDS", 0.05)
    world = PollerWorld(lines(50_000), hangs_after=CHUNK)
    await world.poller.drain([POD])
    assert world.texts()[-1000:] == [f"line {number}" for number in range(49_000, 50_000)]
    [warning] = world.log.warnings
    assert "figures from its middle may be missing" in warning
    assert world.poller.complete == set()


@pytest.mark.exhaustive
@pytest.mark.parametrize("log", ["short lines", "long lines", "read before", "one line"])
async def test_between_two_turns_of_the_loop_little_is_done(log):
    """Counted, not timed: at some 3 ms for a line that is shown and 5 us for one that is read, this is 0.1 s."""
    many = {"short lines": lines(100_000), "long lines": [stamped(n, b"y" * 10_000) for n in range(2000)]}
    many["one line"] = [stamped(0, b"x" * (10 * 1024 * 1024))]
    many["read before"] = lines(100_000)
    world = PollerWorld(many[log])
    if log == "read before":
        await world.poller.poll(JOB)
    turns = []

    async def others():
        while True:
            turns.append((world.figures.read_lines, len(world.log.shown)))
            await asyncio.sleep(0)

    ticking = asyncio.create_task(others())
    await world.poller.drain([POD])
    ticking.cancel()
    turns.append((world.figures.read_lines, len(world.log.shown)))
    pairs = list(itertools.pairwise(turns))
    assert max(after[0] - before[0] for before, after in pairs) <= 1001
    assert max(after[1] - before[1] for before, after in pairs) <= 20
    assert len(turns) > 10
