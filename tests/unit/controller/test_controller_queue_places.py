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
from mxnet_operator.views.kueue import QueuePriority, WorkloadCondition

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


class Scene:
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
async def scene() -> AsyncIterator[Scene]:
    async with kueue() as made:
        yield made


@asynccontextmanager
async def kueue() -> AsyncIterator[Scene]:
    served = Visibility()
    async with served_requests(served.handle) as port:
        api = ScriptedApi(url=f"http://127.0.0.1:{port}")
        async with api.client() as client:
            yield Scene(client, served)


async def test_each_job_has_its_place_and_those_are_reconciled_that_have_another(scene: Scene) -> None:
    for name in ("first", "second", "third"):
        assert scene.look(name) is None
    scene.stand("second", "first", "third")
    await scene.places.read()
    assert [scene.look(each) for each in ("first", "second", "third")] == [queue_place(each) for each in (1, 0, 2)]
    assert sorted(scene.requeued) == [f"mxjobs/default/{each}" for each in ("first", "second", "third")]
    scene.requeued.clear()
    await scene.places.read()
    assert scene.requeued == []
    scene.stand("first", "second", "third")
    await scene.places.read()
    assert sorted(scene.requeued) == ["mxjobs/default/first", "mxjobs/default/second"]


async def test_a_queue_is_asked_for_once_whoever_waits_in_it_and_no_other_is(scene: Scene) -> None:
    for name in ("first", "second"):
        scene.look(name)
    scene.look("third", namespace="team")
    scene.stand("second", "first")
    scene.stand("third", queue="team/a")
    await scene.places.read()
    start = f"{GROUP}/v1beta2/namespaces"
    paths = sorted(each.partition("?")[0] for each in scene.kueue.asked)
    assert paths == [f"{start}/{each}/localqueues/a/pendingworkloads" for each in ("default", "team")]


async def test_a_job_that_is_not_among_those_that_wait_has_no_place(scene: Scene) -> None:
    scene.look("first")
    scene.stand("another")
    await scene.places.read()
    assert scene.look("first") is None
    assert scene.requeued == []


async def test_workloads_of_a_queue_of_that_name_in_another_namespace_are_none_of_its_jobs(scene: Scene) -> None:
    """Kueue 0.15.2 tells them as well, if both queues are of one ClusterQueue."""
    scene.look("first")
    scene.kueue.queues["default/a"] = [(each, workload_of("first")) for each in ("team", "default", "other")]
    await scene.places.read()
    assert scene.look("first") == queue_place(1)


@pytest.mark.parametrize(
    "leaves",
    [
        lambda scene: scene.look("first", conditions=QUOTA),
        lambda scene: scene.look("first", active=False),
        lambda scene: scene.places.forget("mxjobs/default/first"),
        lambda scene: scene.places.clear(),
    ],
    ids=["admitted", "deactivated", "deleted", "no longer ours"],
)
async def test_nobody_is_asked_once_no_job_waits(scene: Scene, leaves: Callable[[Scene], object]) -> None:
    scene.look("first")
    scene.stand("first")
    await scene.places.read()
    assert leaves(scene) is None
    scene.kueue.asked.clear()
    await scene.places.read()
    assert scene.kueue.asked == []
    assert scene.look("first") is None


async def test_a_job_that_moves_to_another_queue_has_its_place_there(scene: Scene) -> None:
    scene.look("first")
    scene.stand("first")
    scene.stand("another", "first", queue="default/b")
    await scene.places.read()
    assert scene.look("first", "b") is None
    scene.kueue.asked.clear()
    await scene.places.read()
    assert scene.look("first", "b") == queue_place(1)
    assert ["/localqueues/b/" in each for each in scene.kueue.asked] == [True]


async def test_an_answer_that_comes_after_its_job_has_left_does_nothing(scene: Scene) -> None:
    arrived, goes_on = asyncio.Event(), asyncio.Event()

    async def slowly(request: web.Request) -> web.StreamResponse:
        arrived.set()
        await goes_on.wait()
        return await answer(summary(item("default", workload_of("first"), 3)))(request)

    scene.kueue.instead = slowly
    scene.look("first")
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        tasks.create_task(scene.places.read())
        await arrived.wait()
        scene.places.clear()
        goes_on.set()
    assert scene.requeued == []


async def test_a_long_queue_is_read_page_by_page_until_all_are_found(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(module, "PAGES", 3)
    scene.look("first")
    scene.stand("x", "y", "z", "first", "u", "v", "w")
    await scene.places.read()
    assert scene.look("first") == queue_place(3)
    queries = [each.partition("?")[2] for each in scene.kueue.asked]
    assert queries == ["limit=2&offset=0", "limit=2&offset=2"]
    scene.stand("x", "y", "z", "t", "u", "v", "first")
    scene.kueue.asked.clear()
    await scene.places.read()
    assert (scene.look("first"), len(scene.kueue.asked)) == (None, 3)


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
    scene: Scene, odd: Callable[[web.Request], Awaitable[web.StreamResponse]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scene.look("first")
    scene.stand("another", "first")
    await scene.places.read()
    assert scene.look("first") == queue_place(1)
    scene.requeued.clear()
    scene.kueue.instead = odd
    await scene.places.read()
    assert scene.look("first") is None
    assert scene.requeued == ["mxjobs/default/first"]
    scene.kueue.asked.clear()
    await scene.later(INTERVAL)
    assert scene.kueue.asked == []
    found = [each for each in caplog.records if each.name.startswith("mxnet_operator")]
    assert len(found) <= 1
    assert all(each.levelno == logging.INFO for each in found)
    scene.kueue.instead = None
    await scene.later(60)
    assert scene.look("first") == queue_place(1)


async def test_an_answer_that_does_not_come_is_not_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.1)

    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    scene.look("first")
    scene.stand("another", "first")
    await scene.places.read()
    scene.kueue.instead = never
    async with asyncio.timeout(SECONDS):
        await scene.places.read()
    assert scene.look("first") is None


async def test_places_are_taken_back_while_it_is_unknown_whether_the_api_is_served(scene: Scene) -> None:
    scene.look("lost", "nope")
    scene.look("first")
    scene.stand("another", "first")
    await scene.places.read()
    assert scene.look("first") == queue_place(1)
    scene.requeued.clear()
    scene.kueue.versions = []
    await scene.places.read()
    assert (scene.look("first"), scene.requeued) == (None, ["mxjobs/default/first"])


@pytest.mark.parametrize("answers", ["a summary", "a summary of nobody", "nothing in it"])
async def test_an_empty_answer_is_none_of_these(scene: Scene, answers: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    empty = {
        "a summary": summary(),
        "a summary of nobody": {**summary(), "items": None},
        "nothing in it": {"items": []},
    }
    scene.kueue.instead = answer(empty[answers])
    scene.look("first")
    await scene.places.read()
    await scene.places.read()
    assert (scene.look("first"), len(scene.kueue.asked)) == (None, 2)
    assert caplog.records == []


@pytest.mark.parametrize("fails", ["each question", "discovery"])
async def test_pauses_grow_to_a_minute_and_one_line_is_logged(
    scene: Scene, fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    if fails == "discovery":
        scene.kueue.versions = []
    scene.kueue.instead = ODD["403"]
    scene.look("first")
    for _ in range(200):
        await scene.later(INTERVAL)
    asked = scene.kueue.discovered / 2 if fails == "discovery" else len(scene.kueue.asked)
    assert 5 <= asked <= 14
    (line,) = caplog.records
    assert (line.levelno, "docs/kueue.md" in line.getMessage()) == (logging.INFO, True)


async def test_a_queue_that_does_not_exist_holds_up_no_other_and_is_not_logged(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    scene.look("lost", "nope")
    scene.look("first")
    scene.stand("another", "first")
    for _ in range(20):
        await scene.later(INTERVAL)
    assert (scene.look("lost", "nope"), scene.look("first")) == (None, queue_place(1))
    assert sum("/localqueues/a/" in each for each in scene.kueue.asked) == 20
    assert caplog.records == []


async def test_the_newest_version_that_is_served_is_asked(scene: Scene) -> None:
    scene.look("first")
    scene.stand("another", "first")
    for served, asked in (
        (["v1beta1"], "v1beta1"),
        (["v1beta2"], "v1beta2"),
        (["v1beta1", "v1beta2"], "v1beta2"),
    ):
        scene.kueue.versions = served
        for _ in range(3):  # once it is gone that is noticed, the other found, and asked
            await scene.later(60)
        assert scene.look("first") == queue_place(1)
        assert scene.kueue.asked[-1].startswith(f"{GROUP}/{asked}/")


async def test_it_goes_on_asking_while_a_job_waits(scene: Scene) -> None:
    running = asyncio.create_task(scene.places.run())
    try:
        scene.stand("another", "first")
        scene.look("first")
        async with asyncio.timeout(SECONDS):
            await until(lambda: scene.look("first") == queue_place(1))
            scene.stand("first")
            await until(lambda: scene.look("first") == queue_place(0))
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
