"""An outage counts from when a server was last heard; what is said of it is said once; pauses grow meanwhile."""

import json
from collections.abc import AsyncGenerator
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from mxnet_operator.client import jobs
from mxnet_operator.client.jobs import collections
from mxnet_operator.client.outage import Outage, Retries
from mxnet_operator.kube.errors import ApiError, ApiUnavailable, SilentConnectionError

ANSWER, AWAY = "answer", "away"
ITEM = {"metadata": {"uid": "u", "name": "digits"}}
BOOKMARK = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}).encode()
Look = tuple[float, object]


class Server:
    """Lists one object, or is away; a watch lasts so many seconds, with a bookmark a minute, and breaks."""

    def __init__(self, looks: list[Look], *, watches: tuple[float, Exception | None] = (0, None)) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self._looks = iter(looks)
        self._watches = watches

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def list(self, _path: str, _params: object) -> dict[str, Any]:
        for seconds, what in self._looks:
            self.now += seconds
            if what == ANSWER:
                return {"items": [ITEM], "metadata": {"resourceVersion": "1"}}
            raise what if isinstance(what, Exception) else ApiUnavailable("away")
        raise LookupError("the end")

    async def watch(self, *_args: object, **_kwargs: object) -> AsyncGenerator[bytes]:
        left, end = self._watches
        while left > 60:
            self.now, left = self.now + 60, left - 60
            yield BOOKMARK
        self.now += left
        if end is not None:
            raise end


RESET, SILENT = ApiUnavailable("reset"), SilentConnectionError("silent")
NO_CRD = ApiError(404, "NotFound", "the server could not find the requested resource")
BUSY = ApiError(429, "TooManyRequests", "later", retry_after=20)


@pytest.mark.parametrize(
    ("looks", "watches", "ends_with"),
    [
        ([(0, ANSWER), (60, AWAY)], (0, None), LookupError),
        ([(0, ANSWER), (61, AWAY)], (0, None), ApiUnavailable),
        ([(0, ANSWER), (59, AWAY), (0, ANSWER), (59, AWAY)], (0, None), LookupError),
        ([(1800, ANSWER), (1800, ANSWER), (1, AWAY)], (0, None), LookupError),
        ([(0, ANSWER), (30, AWAY), (31, AWAY)], (0, None), ApiUnavailable),
        ([(0, ANSWER), (3, AWAY), (3, ANSWER)], (75, RESET), LookupError),
        ([(0, ANSWER), (3, AWAY), (3, ANSWER)], (400, RESET), LookupError),
        ([(0, ANSWER), (30, AWAY), (3, ANSWER)], (58, RESET), LookupError),
        ([(0, ANSWER), (3, AWAY), (58, AWAY)], (75, RESET), ApiUnavailable),
        ([(0, ANSWER), (40, AWAY), (3, ANSWER)], (80, SILENT), LookupError),
        ([(0, ANSWER), (40, AWAY), (3, NO_CRD), (3, ANSWER)], (0, None), LookupError),
        ([(0, NO_CRD), (0, ANSWER)], (0, None), ApiError),
        ([(0, ANSWER), *[(30, BUSY)] * 20, (0, ANSWER)], (0, None), LookupError),
    ],
    ids=[
        "as long as may be",
        "longer",
        "twice with an answer between",
        "a blip after an hour",
        "in pieces",
        "a blip as a watch of 75 s breaks",
        "a blip as a watch of 400 s breaks",
        "a blip as a watch breaks that had nothing to tell",
        "longer as a watch of 75 s breaks",
        "after a silent watch",
        "a server that serves its custom resources late",
        "a server without the custom resource",
        "ten minutes of 429",
    ],
)
async def test_an_absence_counts_from_when_the_server_was_last_heard(
    monkeypatch: pytest.MonkeyPatch,
    looks: list[Look],
    watches: tuple[float, Exception | None],
    ends_with: type[Exception],
) -> None:
    server = Server(looks, watches=watches)
    monkeypatch.setattr(jobs, "Retries", partial(Retries, sleep=server.sleep))
    with pytest.raises(ends_with):
        async for found in collections(server, "/apis/kubeflow.org/v1/mxjobs", outage=Outage(60, server.clock)):  # type: ignore[arg-type]
            assert found == {"u": ITEM}


async def test_pauses_double_up_to_eight_seconds_obey_the_server_and_begin_anew_after_an_answer() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    retries = Retries(Outage(60, lambda: 0.0), sleep)
    for _ in range(6):
        await retries.pause_or_raise(ApiUnavailable("away"))
    retries.answered()
    for error in (ApiUnavailable("away"), BUSY, ApiError(503, "", "later", retry_after=3600)):
        await retries.pause_or_raise(error)
    assert pauses == [0.5, 1, 2, 4, 8, 8, 0.5, 20, 30]


def test_pauses_of_many_spread_out_by_their_jitter() -> None:
    pauses = [Retries(Outage(60), first=10, longest=60, jitter=0.2).next_pause() for _ in range(20)]
    assert 8 <= min(pauses) < max(pauses) <= 12


def test_an_outage_is_told_once_with_its_end_whoever_notices_it() -> None:
    said: list[str] = []
    now = 0.0
    outage = Outage(60, lambda: now, say=said.append, now=lambda: datetime(2026, 11, 28, 18, 3, 13))
    outage.heard()
    for now in (3.0, 4.0, 5.0):  # noqa: B007 - the clock
        outage.lasts_too_long(ApiUnavailable("https://x: Connection refused"))
        outage.disconnected()
    now = 20.0
    outage.heard()
    outage.heard()
    assert said == [
        "the API server doesn't answer; trying until 18:04:10 (https://x: Connection refused)",
        "the API server is back after 20 s",
    ]
    assert outage.longest == 5
