"""What comes between a look and the wait for the next change is not missed."""

import asyncio

from gang_pods import GPU, gang_pods
from stored_pods import NODES, Silent, StoredPods
from waiting import SECONDS, until

from mxnet_operator.local.changes import Changes
from mxnet_operator.local.scheduling.scheduler import Scheduler


async def test_a_ring_before_the_task_that_waits_has_begun_wakes_it() -> None:
    changes = Changes()
    waiting = asyncio.ensure_future(changes.wait())
    changes.ring()
    async with asyncio.timeout(SECONDS):
        await waiting


async def test_a_pod_that_comes_as_the_scheduler_has_just_looked_is_placed() -> None:
    pods, changes = StoredPods(), Changes()
    scheduler = Scheduler(
        pods,  # type: ignore[arg-type]
        "local",
        allocatable={GPU: "8"},
        nodes=lambda: NODES,
        pods=lambda: list(pods.watched.values()),
        changes=changes,
        events=Silent(),  # type: ignore[arg-type]
    )

    def comes() -> None:
        [pod] = gang_pods("a", 1)
        pods.write(pod["metadata"]["name"], pod)
        pods.watch()
        changes.ring()

    running = asyncio.create_task(scheduler.run())
    asyncio.get_running_loop().call_soon(comes)
    try:
        await until(lambda: [pod["spec"].get("nodeName") for pod in pods.stored.values()] == ["local"])
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
