"""Carrying out a plan: a request that can't be made leaves none of the others under way."""

import asyncio

from builders import make_mxjob

from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.controller.executor import Executor
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.plan.actions import DeleteChild, StopPod


class Unserved(DeleteChild, frozen=True):
    """Delete a child whose kind the server no longer serves."""


class Server:
    """Answers late."""

    def __init__(self) -> None:
        self.answered = False

    async def patch(self, *_: object) -> dict[str, object]:
        for _ in range(5):
            await asyncio.sleep(0)
        self.answered = True
        return {"metadata": {"labels": {}, "resourceVersion": "2"}}


async def test_the_other_requests_are_answered_before_one_that_cannot_be_made_is_told() -> None:
    server, job = Server(), make_mxjob("digits").worker(1).obj()
    executor = Executor(server, OwnWrites({MXJOBS: Indexer()}))  # type: ignore[arg-type]
    outcome = await executor.carry_out(job, [Unserved("gone", "u"), StopPod("digits-worker-0", "p")])
    assert server.answered
    assert "no longer serves its kind" in str(outcome.error)
