"""Jobs share the controller's requests in turn: a small job is not held up by large ones that came before it."""

import asyncio
import contextlib
import random
from collections import Counter

import pytest
from builders import make_mxjob
from controller_fixtures import PODS, submitted, world
from waiting import MOMENT, until

from mxnet_operator.controller import controller as controller_module
from mxnet_operator.controller.controller import Controller
from mxnet_operator.controller.fair_semaphore import IN_FLIGHT, FairSemaphore
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.credentials import load_credentials

LARGE, SMALL = 150, 2


class Counted(FairSemaphore):
    """FairSemaphore that count, for each that a job waited for, those that others got meanwhile."""

    def __init__(self):
        super().__init__()
        self.given, self.waited = 0, {}

    @contextlib.asynccontextmanager
    async def turn(self, key):
        asked = self.given
        async with super().turn(key):
            self.waited.setdefault(key, []).append(self.given - asked)
            self.given += 1
            yield


class Gated(Client):
    """A client that creates pods only as the gate lets them through: a server under load."""

    def __init__(self, credentials):
        super().__init__(credentials)
        self.gate = asyncio.Semaphore(0)

    async def create_as(self, path, *args, **kwargs):
        if path == PODS:
            await self.gate.acquire()
        return await super().create_as(path, *args, **kwargs)


def workers(name, count):
    return submitted(make_mxjob(name).worker(count))


@pytest.mark.parametrize("large", [1, 12])
async def test_a_small_job_gets_its_pods_while_large_ones_that_came_first_wait_for_theirs(tmp_path, monkeypatch, large):
    """Twelve large ones are more than there are workers (8)."""
    monkeypatch.setattr(controller_module, "FairSemaphore", Counted)
    async with world(tmp_path, start=False) as w, Gated(load_credentials(str(w.kubeconfig))) as client:
        controller = Controller(client)
        turns = controller._requests
        running = asyncio.create_task(controller.run())
        try:
            for number in range(large):
                await w.submit(workers(f"large-{number}", LARGE))
            await until(lambda: controller.queue.working == large)
            await until(lambda: turns.given >= IN_FLIGHT)
            await w.submit(workers("small", SMALL))
            await until(lambda: controller.queue.working == large + 1)
            while len(turns.waited.get("default/small", ())) < 1 + SMALL:
                client.gate.release()
                await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    # The Service waits for a turn of each other job, and so does the first pod; the second for two.
    assert max(turns.waited["default/small"]) <= SMALL * (large + 1), turns.waited


@pytest.mark.parametrize("cancels", [False, True])
async def test_places_go_round_and_none_is_lost(cancels):
    """Whatever requests come, end and are cancelled: while one key waits, each other one gets at most one place."""
    for seed in range(25):
        print(f"seed {seed}")
        await places_go_round(random.Random(seed), cancels)


async def places_go_round(draw, cancels):
    limit = draw.randint(1, 5)
    turns, inside, waiting, since = FairSemaphore(limit), set(), Counter(), {}

    async def request(key, go):
        if not waiting[key]:
            since[key] = Counter()
        waiting[key] += 1
        async with turns.turn(key):
            waiting[key] -= 1
            for other, served in since.items():
                served[key] += 1
                assert cancels or other == key or not waiting[other] or served[key] <= 1, (other, served)
            since[key] = Counter()
            inside.add(go)
            assert len(inside) <= limit
            try:
                await go.wait()
            finally:
                inside.discard(go)

    tasks = []
    for _ in range(150):
        choice = draw.random()
        if choice < 0.6:
            go = asyncio.Event()
            tasks.append((asyncio.create_task(request(draw.choice("abcd"), go)), go))
        elif tasks:
            task, go = draw.choice(tasks)
            if choice < 0.9 or not cancels:
                go.set()
            else:
                task.cancel()
        for _ in range(draw.randint(0, 3) if cancels else 4):  # who has been given a place has taken it
            await asyncio.sleep(0)
    for _, go in tasks:
        go.set()
    async with asyncio.timeout(MOMENT):
        results = await asyncio.gather(*(task for task, _ in tasks), return_exceptions=True)
        assert not any(isinstance(result, Exception) for result in results), results
        async with contextlib.AsyncExitStack() as places:  # every place is free again
            for _ in range(limit):
                await places.enter_async_context(turns.turn("e"))
