"""Places of waiting jobs in their queues: what is asked of Kueue's visibility API, and what its answers do.

A server of the test's plays that API, odd answers included; a real one is in tests/cluster/test_cluster_kueue.py.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import web
from builders import NOW, make_mxjob
from scripted_api import ScriptedApi, Turn, answer, hang_up, refuse
from served_requests import served_requests
from waiting import SECONDS, until

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJob
from mxnet_operator.controller import queue_places as module
from mxnet_operator.controller.queue_places import INTERVAL, QueuePlaces
from mxnet_operator.kube.client import Client
from mxnet_operator.plan import Observed, QueuePlace, QueueSystem, QueueWorkload, plan, queue_place
from mxnet_operator.plan.queue import workload_name
from mxnet_operator.readers.kueue import QueuePriority, WorkloadCondition

GROUP = "/apis/visibility.kueue.x-k8s.io"
QUOTA = (WorkloadCondition("QuotaReserved", "True"),)


class Visibility:
    """What a test has Kueue's visibility API answer."""

    def __init__(self) -> None:
        self.versions = ["v1beta2", "v1beta1"]
        self.queues: dict[str, list[tuple[str, str]]] = {}
        """Namespaces and names of the Workloads of a ClusterQueue in their order, by `namespace/LocalQueue`."""
        self.instead: Turn | None = None
        """What is answered in place of the Workloads of a queue."""
        self.asked: list[str] = []
        """Paths and queries of the questions for a queue."""
        self.discovered = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        _, version, *rest = request.path.removeprefix("/apis/").split("/")
        if not rest:
            self.discovered += 1
        if version not in self.versions:
            return await refuse(404, "NotFound", "the server could not find the requested resource")(request)
        if not rest:
            resources = ("localqueues", "localqueues/pendingworkloads")
            return await answer({"kind": "APIResourceList", "resources": [{"name": each} for each in resources]})(
                request
            )
        self.asked.append(request.path_qs)
        if self.instead is not None:
            return await self.instead(request)
        _, namespace, _, queue, _ = rest
        if f"{namespace}/{queue}" not in self.queues:
            return await refuse(404, "NotFound", f'localqueue "{queue}" not found')(request)
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        found = [item(*each, place) for place, each in enumerate(self.queues[f"{namespace}/{queue}"])]
        return await answer(summary(*found[offset : offset + limit]))(request)


def item(namespace: str, name: str, place: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-11-24T10:00:00Z"},
        "priority": 0,
        "localQueueName": "a",
        "positionInClusterQueue": place,
        "positionInLocalQueue": place,
    }


def summary(*items: Any) -> dict[str, Any]:
    kind = {"kind": "PendingWorkloadsSummary", "apiVersion": "visibility.kueue.x-k8s.io/v1beta2"}
    return {**kind, "metadata": {}, "items": list(items)}


class QueueWorld:
    """Jobs that wait, and the time."""

    def __init__(self, client: Client, kueue: Visibility) -> None:
        self.kueue, self.now = kueue, 0.0
        self.requeued: list[str] = []
        self.places = QueuePlaces(client, self.requeued.append, interval=0.001, clock=lambda: self.now)

    def look(self, name: str, queue: str = "a", namespace: str = "default", **fields: Any) -> QueuePlace | None:
        """Look at a job that waits in a queue, as a reconciliation does; fields of its Workload may be others."""
        job, of = queued(name, queue, namespace)
        observed = Observed(queues=QueueSystem("Served"), workload=msgspec.structs.replace(of, **fields))
        return self.places.place_of(f"mxjobs/{namespace}/{name}", job, observed)

    def stand(self, *names: str, queue: str = "default/a") -> None:
        """Have the Workloads of these jobs stand in a queue, in this order."""
        namespace = queue.partition("/")[0]
        self.kueue.queues[queue] = [(namespace, workload_of(each)) for each in names]

    async def later(self, seconds: float) -> None:
        self.now += seconds
        await self.places.read()


def queued(name: str, queue: str = "a", namespace: str = "default") -> tuple[MXJob, QueueWorkload]:
    job = make_mxjob(name).worker(1).obj()
    metadata = msgspec.structs.replace(job.metadata, labels={names.QUEUE_LABEL: queue}, namespace=namespace)
    job = msgspec.structs.replace(job, metadata=metadata)
    return job, QueueWorkload(name=workload_name(job), uid="w", owner_uid=job.metadata.uid)


def workload_of(name: str) -> str:
    return workload_name(queued(name)[0])


@pytest.fixture
async def world() -> AsyncIterator[QueueWorld]:
    async with kueue() as made:
        yield made


@asynccontextmanager
async def kueue() -> AsyncIterator[QueueWorld]:
    served = Visibility()
    async with served_requests(served.handle) as port:
        api = ScriptedApi(url=f"http://127.0.0.1:{port}")
        async with api.client() as client:
            yield QueueWorld(client, served)


async def test_each_job_has_its_place_and_those_are_reconciled_that_have_another(world: QueueWorld) -> None:
    for name in ("first", "second", "third"):
        assert world.look(name) is None
    world.stand("second", "first", "third")
    await world.places.read()
    assert [world.look(each) for each in ("first", "second", "third")] == [queue_place(each) for each in (1, 0, 2)]
    assert sorted(world.requeued) == [f"mxjobs/default/{each}" for each in ("first", "second", "third")]
    world.requeued.clear()
    await world.places.read()
    assert world.requeued == []
    world.stand("first", "second", "third")
    await world.places.read()
    assert sorted(world.requeued) == ["mxjobs/default/first", "mxjobs/default/second"]


async def test_a_queue_is_asked_for_once_whoever_waits_in_it_and_no_other_is(world: QueueWorld) -> None:
    for name in ("first", "second"):
        world.look(name)
    world.look("third", namespace="team")
    world.stand("second", "first")
    world.stand("third", queue="team/a")
    await world.places.read()
    start = f"{GROUP}/v1beta2/namespaces"
    paths = sorted(each.partition("?")[0] for each in world.kueue.asked)
    assert paths == [f"{start}/{each}/localqueues/a/pendingworkloads" for each in ("default", "team")]


async def test_a_job_that_is_not_among_those_that_wait_has_no_place(world: QueueWorld) -> None:
    world.look("first")
    world.stand("another")
    await world.places.read()
    assert world.look("first") is None
    assert world.requeued == []


async def test_workloads_of_a_queue_of_that_name_in_another_namespace_are_none_of_its_jobs(world: QueueWorld) -> None:
    """Kueue 0.15.2 tells them as well, if both queues are of one ClusterQueue."""
    world.look("first")
    world.kueue.queues["default/a"] = [(each, workload_of("first")) for each in ("team", "default", "other")]
    await world.places.read()
    assert world.look("first") == queue_place(1)


@pytest.mark.parametrize(
    "leaves",
    [
        lambda world: world.look("first", conditions=QUOTA),
        lambda world: world.look("first", active=False),
        lambda world: world.places.forget("mxjobs/default/first"),
        lambda world: world.places.clear(),
    ],
    ids=["admitted", "deactivated", "deleted", "no longer ours"],
)
async def test_nobody_is_asked_once_no_job_waits(world: QueueWorld, leaves: Callable[[QueueWorld], object]) -> None:
    world.look("first")
    world.stand("first")
    await world.places.read()
    assert leaves(world) is None
    world.kueue.asked.clear()
    await world.places.read()
    assert world.kueue.asked == []
    assert world.look("first") is None


async def test_a_job_that_moves_to_another_queue_has_its_place_there(world: QueueWorld) -> None:
    world.look("first")
    world.stand("first")
    world.stand("another", "first", queue="default/b")
    await world.places.read()
    assert world.look("first", "b") is None
    world.kueue.asked.clear()
    await world.places.read()
    assert world.look("first", "b") == queue_place(1)
    assert ["/localqueues/b/" in each for each in world.kueue.asked] == [True]


async def test_an_answer_that_comes_after_its_job_has_left_does_nothing(world: QueueWorld) -> None:
    arrived, goes_on = asyncio.Event(), asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        arrived.set()
        await goes_on.wait()
        return await answer(summary(item("default", workload_of("first"), 3)))(request)

    world.kueue.instead = slowly
    world.look("first")
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(world.places.read())
        await arrived.wait()
        world.places.clear()
        goes_on.set()
    assert world.requeued == []


async def test_a_long_queue_is_read_page_by_page_until_all_are_found(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(module, "PAGES", 3)
    world.look("first")
    world.stand("x", "y", "z", "first", "u", "v", "w")
    await world.places.read()
    assert world.look("first") == queue_place(3)
    queries = [each.partition("?")[2] for each in world.kueue.asked]
    assert queries == ["limit=2&offset=0", "limit=2&offset=2"]
    world.stand("x", "y", "z", "t", "u", "v", "first")
    world.kueue.asked.clear()
    await world.places.read()
    assert (world.look("first"), len(world.kueue.asked)) == (None, 3)


ODD = {
    "403": refuse(403, "Forbidden", 'localqueues.visibility.kueue.x-k8s.io "a" is forbidden'),
    "404": refuse(404, "NotFound", 'localqueue "a" not found'),
    "500": refuse(500, "InternalError"),
    "503": refuse(503, "ServiceUnavailable"),
    "503 and no Status": answer("service unavailable", 503),
    "hangs up": hang_up(),
    "null": answer(None),
    "a list": answer([]),
    "a Status": answer({"kind": "Status", "status": "Success", "metadata": {}}),
    "items are words": answer({"items": ["x"]}),
    "no metadata": answer({"items": [{"positionInClusterQueue": 1}]}),
    "no place": answer({"items": [{"metadata": {"name": "n", "namespace": "default"}}]}),
    "a place below none": answer(summary(item("default", "n", -1))),
    "a place in words": answer(summary(item("default", "n", "1"))),
    "a place without end": answer(summary(item("default", "n", 10**30))),
    "half a place": answer(summary(item("default", "n", 0.5))),
}


async def html(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"<html>Sign in</html>", content_type="text/html")


@pytest.mark.parametrize("odd", [*ODD.values(), html], ids=[*ODD, "HTML"])
async def test_an_odd_answer_takes_the_place_back_and_is_asked_for_less_and_less_often(
    world: QueueWorld, odd: Callable[[web.Request], Awaitable[web.StreamResponse]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.look("first")
    world.stand("another", "first")
    await world.places.read()
    assert world.look("first") == queue_place(1)
    world.requeued.clear()
    world.kueue.instead = odd
    await world.places.read()
    assert world.look("first") is None
    assert world.requeued == ["mxjobs/default/first"]
    world.kueue.asked.clear()
    await world.later(INTERVAL)
    assert world.kueue.asked == []
    found = [each for each in caplog.records if each.name.startswith("mxnet_operator")]
    assert len(found) <= 1
    assert all(each.levelno == logging.INFO for each in found)
    world.kueue.instead = None
    await world.later(60)
    assert world.look("first") == queue_place(1)


async def test_an_answer_that_does_not_come_is_not_waited_for(
    world: QueueWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.1)

    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    world.look("first")
    world.stand("another", "first")
    await world.places.read()
    world.kueue.instead = never
    async with asyncio.timeout(SECONDS):
        await world.places.read()
    assert world.look("first") is None


async def test_places_are_taken_back_while_it_is_unknown_whether_the_api_is_served(world: QueueWorld) -> None:
    world.look("lost", "nope")
    world.look("first")
    world.stand("another", "first")
    await world.places.read()
    assert world.look("first") == queue_place(1)
    world.requeued.clear()
    world.kueue.versions = []
    await world.places.read()
    assert (world.look("first"), world.requeued) == (None, ["mxjobs/default/first"])


@pytest.mark.parametrize("answers", ["a summary", "a summary of nobody", "nothing in it"])
async def test_an_empty_answer_is_none_of_these(
    world: QueueWorld, answers: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    empty = {
        "a summary": summary(),
        "a summary of nobody": {**summary(), "items": None},
        "nothing in it": {"items": []},
    }
    world.kueue.instead = answer(empty[answers])
    world.look("first")
    await world.places.read()
    await world.places.read()
    assert (world.look("first"), len(world.kueue.asked)) == (None, 2)
    assert caplog.records == []


@pytest.mark.parametrize("fails", ["each question", "discovery"])
async def test_pauses_grow_to_a_minute_and_one_line_is_logged(
    world: QueueWorld, fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    if fails == "discovery":
        world.kueue.versions = []
    world.kueue.instead = ODD["403"]
    world.look("first")
    for _ in range(200):
        await world.later(INTERVAL)
    asked = world.kueue.discovered / 2 if fails == "discovery" else len(world.kueue.asked)
    assert 5 <= asked <= 14
    (line,) = caplog.records
    assert (line.levelno, "docs/kueue.md" in line.getMessage()) == (logging.INFO, True)


async def test_a_queue_that_does_not_exist_holds_up_no_other_and_is_not_logged(
    world: QueueWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.look("lost", "nope")
    world.look("first")
    world.stand("another", "first")
    for _ in range(20):
        await world.later(INTERVAL)
    assert (world.look("lost", "nope"), world.look("first")) == (None, queue_place(1))
    assert sum("/localqueues/a/" in each for each in world.kueue.asked) == 20
    assert caplog.records == []


async def test_the_newest_version_that_is_served_is_asked(world: QueueWorld) -> None:
    world.look("first")
    world.stand("another", "first")
    for served, asked in (
        (["v1beta1"], "v1beta1"),
        (["v1beta2"], "v1beta2"),
        (["v1beta1", "v1beta2"], "v1beta2"),
    ):
        world.kueue.versions = served
        for _ in range(3):  # once it is gone that is noticed, the other found, and asked
            await world.later(60)
        assert world.look("first") == queue_place(1)
        assert world.kueue.asked[-1].startswith(f"{GROUP}/{asked}/")


async def test_it_goes_on_asking_while_a_job_waits(world: QueueWorld) -> None:
    running = asyncio.create_task(world.places.run())
    try:
        world.stand("another", "first")
        world.look("first")
        async with asyncio.timeout(SECONDS):
            await until(lambda: world.look("first") == queue_place(1))
            world.stand("first")
            await until(lambda: world.look("first") == queue_place(0))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_job_says_was_right_within_the_last_five_seconds(seed: int) -> None:
    """The test asks every `INTERVAL`, and looks at the job as the controller does; an answer takes 0.1 s."""
    chance = random.Random(seed)
    job, of = queued("first")
    pending = msgspec.structs.replace(of, conditions=(WorkloadCondition("QuotaReserved", "False", "Pending", "wait"),))
    true, known, look_at, ask_at = [15], 15, 0.0, chance.uniform(0, INTERVAL)
    for tenth in range(1200):
        now = tenth / 10
        true.append(chance.randrange(20) if chance.random() < 0.05 else true[-1])
        if ask_at <= now:
            ask_at, was, known = now + INTERVAL + 0.1, known, true[max(tenth - 1, 0)]
            look_at = now if was != known else look_at
        if look_at <= now:
            priority = QueuePriority("PriorityClass", "")
            seen = Observed(
                queues=QueueSystem("Served"), workload=pending, queue_place=queue_place(known), queue_priority=priority
            )
            decided = plan(job, seen, NOW + timedelta(seconds=now))
            again = decided.requeue_after
            look_at = now + again.total_seconds() if again is not None else float("inf")
            if decided.status is not None:
                job = msgspec.structs.replace(job, status=decided.status)
                look_at = now
        if now > 5:
            said = next(each.message for each in job.status.conditions if each.type == conditions.ADMITTED)
            recent = {f"{queue_place(each)}" for each in true[-51:]}
            assert said.partition("; ")[2] in recent, (now, said)
