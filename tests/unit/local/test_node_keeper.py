"""A node that its API server no longer knows registers anew, however often that fails."""

import asyncio

from waiting import MOMENT

from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.local.kubelet.node import NodeKeeper
from mxnet_operator.local.waiting import Timing


class Server:
    """Comes back empty, and goes away again, before it takes the node."""

    def __init__(self):
        self.creations = [None, ApiUnavailable("away"), None]
        self.beats = [*(ApiError(404, "NotFound", "no node") for _ in range(3)), None]
        self.lives = asyncio.Event()

    async def create(self, _path, _node):
        await self._answer(self.creations)

    async def patch(self, _path, _status, _type):
        await self._answer(self.beats)
        self.lives.set()

    async def _answer(self, answers):
        await asyncio.sleep(0)
        answer = answers.pop(0) if answers else None
        if answer is not None:
            raise answer


async def test_a_node_outlives_a_server_that_forgets_it_and_goes_away():
    server = Server()
    timing = Timing(api_retry=0.0, api_retry_limit=0.0, node_heartbeat=3600.0)
    running = asyncio.create_task(NodeKeeper(server, "local", {}, timing, {}).run())
    waiting = asyncio.create_task(server.lives.wait())
    await asyncio.wait({running, waiting}, timeout=MOMENT, return_when=asyncio.FIRST_COMPLETED)
    assert server.lives.is_set(), running.exception() if running.done() else "it reports nothing"
    running.cancel()
