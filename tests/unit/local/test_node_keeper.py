"""A node that its API server doesn't know registers, however often that fails."""

import asyncio

from waiting import MOMENT

from mxnet_operator.kube.errors import ApiError, ApiUnavailable
from mxnet_operator.local.kubelet.node import NodeKeeper
from mxnet_operator.local.waiting import Timing


class Server:
    """Comes up empty, and goes away again, before it takes the node."""

    def __init__(self):
        self.failures = [ApiUnavailable("away")]
        self.knows_node = False
        self.lives = asyncio.Event()

    async def create(self, _path, _node):
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop()
        self.knows_node = True

    async def patch(self, _path, _status, _type):
        await asyncio.sleep(0)
        if not self.knows_node:
            raise ApiError(404, "NotFound", "no node")
        self.lives.set()


async def test_a_node_outlives_a_server_that_forgets_it_and_goes_away():
    server = Server()
    timing = Timing(api_retry=0.0, api_retry_limit=0.0, node_heartbeat=0.0)
    running = asyncio.create_task(NodeKeeper(server, "local", {}, timing, {}).run())
    for _ in range(2):
        waiting = asyncio.create_task(server.lives.wait())
        await asyncio.wait({running, waiting}, timeout=MOMENT, return_when=asyncio.FIRST_COMPLETED)
        assert server.lives.is_set(), running.exception() if running.done() else "it reports nothing"
        server.failures, server.knows_node = [ApiUnavailable("away")], False
        server.lives.clear()
    running.cancel()
