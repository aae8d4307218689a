"""The feed of a job's page: what it still asks of the server once the job has ended."""

import asyncio
from collections import Counter

import pytest
from builders import make_mxjob
from moved_time import run_in_moved_time

from mxnet_operator.dashboard.job_feed import JobFeed


class Server:
    """An API server without pods, and how often each list, watch and log was asked for."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    async def list(self, path, params=None):
        self.asked[path] += 1
        items = [self.job] if path.endswith("/mxjobs") else []
        return {"metadata": {"resourceVersion": "1"}, "items": items}

    async def watch(self, path, params, **options):
        await asyncio.Event().wait()
        yield b""

    async def stream(self, path, params, **options):
        self.asked[path] += 1
        return
        yield b""


@pytest.mark.parametrize(("state", "is_asked_again"), [("Succeeded", False), ("Running", True)])
def test_events_and_logs_are_polled_until_the_job_has_ended(monkeypatch, state, is_asked_again):
    server = Server()
    server.job = make_mxjob("digits").worker(1).condition(state).manifest()
    server.job["metadata"] |= {"resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    server.job["status"]["state"] = state

    async def watch():
        async with JobFeed(server, server.job, ""):
            await asyncio.sleep(600)
        return {path.rpartition("/")[2]: count for path, count in server.asked.items()}

    asked = run_in_moved_time(watch(), monkeypatch)
    assert asked["log"] >= 1
    two_readings = 4  # of the job's events and its pods'; the second has what came after the job's last status
    assert (asked["events"] > two_readings, asked["log"] > 1) == (is_asked_again, is_asked_again)
