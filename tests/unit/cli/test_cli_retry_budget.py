"""The retry budget of a command counts from the last answer of a server that is away; pauses grow meanwhile."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest

from mxnet_operator.client import jobs
from mxnet_operator.client.jobs import RetryBudget, collections
from mxnet_operator.kube.client import ApiUnavailable

ANSWER, AWAY = "answer", "away"
ITEM = {"metadata": {"uid": "u", "name": "digits"}}


class Server:
    """Lists one object, or is away; each watch ends at once."""

    def __init__(self, looks: list[tuple[float, str]]) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self._looks = iter(looks)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def list(self, _path: str, _params: object) -> dict[str, Any]:
        for seconds, what in self._looks:
            self.now += seconds
            if what == AWAY:
                raise ApiUnavailable("away")
            return {"items": [ITEM], "metadata": {"resourceVersion": "1"}}
        raise LookupError("the end")

    async def watch(self, *_args: object, **_kwargs: object) -> AsyncGenerator[bytes]:
        return
        yield


@pytest.mark.parametrize(
    ("looks", "ends_with"),
    [
        ([(0, ANSWER), (60, AWAY)], LookupError),
        ([(0, ANSWER), (61, AWAY)], ApiUnavailable),
        ([(0, ANSWER), (59, AWAY), (0, ANSWER), (59, AWAY)], LookupError),
        ([(1800, ANSWER), (1800, ANSWER), (1, AWAY)], LookupError),
        ([(0, ANSWER), (30, AWAY), (31, AWAY)], ApiUnavailable),
    ],
    ids=["as long as may be", "longer", "twice with an answer between", "a blip after an hour", "in pieces"],
)
async def test_an_absence_counts_from_the_last_answer(
    monkeypatch: pytest.MonkeyPatch, looks: list[tuple[float, str]], ends_with: type[Exception]
) -> None:
    server = Server(looks)
    monkeypatch.setattr(jobs, "RetryBudget", partial(RetryBudget, clock=server.clock, sleep=server.sleep))
    with pytest.raises(ends_with):
        async for found in collections(server, "/apis/kubeflow.org/v1/mxjobs", retry_timeout=60):  # type: ignore[arg-type]
            assert found == {"u": ITEM}


async def test_pauses_double_up_to_eight_seconds_and_begin_anew_after_an_answer() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    budget = RetryBudget(60, clock=lambda: 0.0, sleep=sleep)
    for _ in range(6):
        await budget.bear(ApiUnavailable("away"))
    budget.answered()
    await budget.bear(ApiUnavailable("away"))
    assert pauses == [0.5, 1, 2, 4, 8, 8, 0.5]
