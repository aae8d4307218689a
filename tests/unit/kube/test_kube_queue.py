"""The work queue: once each, one at a time, later where asked."""

import asyncio

import pytest
from waiting import MOMENT

from mxnet_operator.kube.backoff import Backoff
from mxnet_operator.kube.queue import QueueObserver, WorkQueue


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def queue(clock):
    return WorkQueue(Backoff(first=1.0, longest=60.0), clock)


async def test_a_key_added_while_it_is_worked_on_comes_back_when_that_is_done(queue):
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert len(queue) == 1
    assert await queue.get() == "a"


async def test_a_key_that_is_only_looked_at_again_comes_after_those_that_changed(queue):
    for key in ("old-1", "old-2", "old-3"):
        queue.add_low_priority(key)
    queue.add("new")
    queue.add("old-2")
    queue.add_low_priority("new")
    assert len(queue) == 4
    assert [await queue.get() for _ in range(4)] == ["new", "old-2", "old-1", "old-3"]
    assert len(queue) == 0


async def test_a_worker_that_waits_gets_a_key_that_is_only_looked_at_again(queue):
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add_low_priority("a")
    assert await worker == "a"


async def test_a_key_added_soon_after_it_was_worked_on_rests_first(clock):
    queue = WorkQueue(clock=clock, rest=0.001)
    queue.add("a")
    queue.done(await queue.get())
    queue.add("a")
    assert len(queue) == 0
    async with asyncio.timeout(MOMENT):
        assert await queue.get() == "a"


async def test_a_key_that_has_rested_is_queued_at_once():
    queue = WorkQueue(rest=0.001)
    for key in ("a", "b"):
        queue.add(key)
        queue.done(await queue.get())
    queue.add("b")
    async with asyncio.timeout(MOMENT):
        assert await queue.get() == "b"  # "a" rested first
    queue.add("a")
    assert len(queue) == 1


async def test_a_cancelled_worker_passes_its_key_on(queue):
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"


async def test_a_delayed_key_comes_when_it_is_due_and_not_before(queue, clock):
    queue.add_after("a", 5)
    clock.now += 4.9
    queue.promote_due()
    assert len(queue) == 0
    clock.now += 0.1
    queue.promote_due()
    assert len(queue) == 1


async def test_the_earliest_of_several_delays_counts_and_the_key_comes_once(queue, clock):
    queue.add_after("a", 50)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    clock.now += 5
    queue.promote_due()
    assert await queue.get() == "a"
    queue.done("a")
    clock.now += 100
    queue.promote_due()
    assert len(queue) == 0


async def test_a_key_that_comes_up_by_itself_drops_its_delayed_return(queue, clock):
    queue.add_after("a", 5)
    queue.add("a")
    queue.done(await queue.get())
    clock.now += 10
    queue.promote_due()
    assert len(queue) == 0


async def test_the_queue_wakes_by_its_own_timer():
    queue = WorkQueue()
    queue.add_after("a", 0.001)
    async with asyncio.timeout(MOMENT):
        assert await queue.get() == "a"


async def test_failures_double_the_delay_until_they_are_forgotten(queue):
    delays = [queue.add_rate_limited("a") for _ in range(8)]
    for number, delay in enumerate(delays):
        whole = min(60.0, 2.0**number)
        assert whole / 2 <= delay <= whole
    queue.forget("a")
    assert queue.add_rate_limited("a") <= 1.0


def test_the_delay_stays_finite_after_any_number_of_failures():
    assert Backoff(first=0.1, longest=30.0).delay(100_000) <= 30.0


class Heard(QueueObserver):
    def __init__(self):
        self.all = []

    def added(self):
        self.all.append("added")

    def taken(self, waited):
        self.all.append(("taken", waited))

    def finished(self, worked):
        self.all.append(("finished", worked))

    def retried(self):
        self.all.append("retried")


async def test_an_observer_hears_of_each_step_and_how_long_it_took(clock):
    heard = Heard()
    queue = WorkQueue(clock=clock, observer=heard)
    queue.add("a")
    queue.add("a")  # one wish, however often it is uttered
    clock.now += 2
    key = await queue.get()
    clock.now += 3
    assert (queue.working, queue.longest_work()) == (1, 3)
    queue.add_rate_limited(key)
    queue.done(key)
    assert heard.all == ["added", ("taken", 2), "retried", ("finished", 3)]
    assert (queue.working, queue.longest_work()) == (0, 0)


async def test_a_cleared_queue_has_forgotten_all_but_what_workers_have(queue, clock):
    for key in ("a", "b"):
        queue.add(key)
    assert await queue.get() == "a"
    queue.add_after("later", 5)
    queue.add_rate_limited("failing")
    queue.clear()
    clock.now += 100
    queue.promote_due()
    assert len(queue) == 0
    assert queue.add_rate_limited("failing") <= 1.0, "its failure is not forgotten"
    queue.add("a")
    queue.done("a")
    assert await queue.get() == "a"
