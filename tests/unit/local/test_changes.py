"""What comes between a look and the wait for the next change is not missed."""

import asyncio

from gang_pods import gang_pods
from stored_pods import StoredPods, scheduler_of
from waiting import MOMENT, until

from mxnet_operator.local.waiting import Changes


async def test_a_ring_before_the_task_that_waits_has_begun_wakes_it() -> None:
    changes = Changes()
    waiting = asyncio.ensure_future(changes.wait())
    changes.notify()
    async with asyncio.timeout(MOMENT):
        await waiting


async def test_a_pod_that_comes_as_the_scheduler_has_just_looked_is_placed() -> None:
    pods, changes = StoredPods(), Changes()
    scheduler = scheduler_of(pods, changes=changes)

    def comes() -> None:
        [pod] = gang_pods("a", 1)
        pods.write(pod["metadata"]["name"], pod)
        pods.watch()
        changes.notify()

    running = asyncio.create_task(scheduler.run())
    asyncio.get_running_loop().call_soon(comes)
    try:
        await until(lambda: [pod["spec"].get("nodeName") for pod in pods.stored.values()] == ["local"])
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
