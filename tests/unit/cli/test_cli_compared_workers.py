"""What `mxjob run` says of all workers' logs, while it follows one of them."""

import asyncio

import pytest

from mxnet_operator.api.types import SlowWorker
from mxnet_operator.cli.running import follow_replicas
from mxnet_operator.readers.training_log import TrainingLog

JOB = {"metadata": {"name": "digits", "namespace": "default"}}
OWN = "mxjob: stalled for 300 s, without CPU or output, at a.py:3, in f"
OF_ALL = "stalled for 5m: worker-1 stands at a.py:3 in f"
SLOW = SlowWorker(name="worker-1", node="a", percent=5)
SAID = "Below 70 % of the workers' median speed: worker-1 on node a (5 %)."


class Run:
    """A run whose log has a line before each look, and whose workers' logs say the same at each look."""

    def __init__(self, monkeypatch, lines, *, slow=()):
        self.training = TrainingLog()
        self.notes = []
        self.looks_at_all = 0
        self._lines = iter(lines)
        self._slow = slow
        monkeypatch.setattr(follow_replicas, "compare_workers", self.compare)
        monkeypatch.setattr(follow_replicas.asyncio, "sleep", self.sleep)

    def note(self, text):
        self.notes.append(text)

    async def sleep(self, _seconds):
        line = next(self._lines, None)
        if line is None:
            raise asyncio.CancelledError
        if line:
            self.training.take(line)

    async def compare(self, _client, _job, training):
        self.looks_at_all += 1
        if training.stall:
            training.stall = OF_ALL
        training.slow_workers = self._slow

    async def notes_of(self):
        with pytest.raises(asyncio.CancelledError):
            await follow_replicas.show_comparison(None, JOB, self)
        return self.notes


async def test_a_stall_is_told_once_and_only_after_all_workers_had_time_to_say_theirs(monkeypatch):
    run = Run(monkeypatch, ["Epoch[0] loss=1", OWN, "", "", "", "", "Epoch[1] loss=1", "", "", "", OWN, "", "", ""])
    said = f"{OF_ALL}; their stacks: mxjob logs digits --replica all -n default"
    assert await run.notes_of() == [said, said]


async def test_a_stall_that_passes_at_once_is_not_told(monkeypatch):
    assert await Run(monkeypatch, ["", OWN, "Epoch[1] loss=1", "", "", ""]).notes_of() == []


async def test_slow_workers_are_told_once_and_all_logs_are_read_at_every_third_look(monkeypatch):
    run = Run(monkeypatch, [""] * 9, slow=(SLOW,))
    assert await run.notes_of() == [SAID]
    assert run.looks_at_all == 3
    assert run.training.warnings == [SAID]
