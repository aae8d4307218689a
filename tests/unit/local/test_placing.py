"""Which gangs are placed, in which order, and what the others are said to wait for."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from gang_pods import GPU, bound, gang_pods, lone_pod
from stored_pods import StoredPods, scheduler_of
from waiting import MOMENT

from mxnet_operator.local.scheduling.gangs import in_order
from mxnet_operator.local.scheduling.placing import Node, decide
from mxnet_operator.local.scheduling.scheduler import FORMING_SECONDS, SECONDS_PER_CHANGE, taken


def look(
    *pods: dict[str, Any], gpus: int = 8, blocked: dict[str, str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """The names of pods that are placed, and the words on the first pod of each job that is not."""
    free = Decimal(gpus) - taken(pods).get(GPU, Decimal(0))
    node = Node({GPU: Decimal(gpus), "cpu": Decimal(2)}, {"zone": "a"})
    decision = decide(in_order(pods), node, {GPU: free, "cpu": Decimal(2)}, blocked or {})
    placed = [pod["metadata"]["name"] for pod in decision.to_place]
    by_uid = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in pods}
    return placed, {by_uid[uid].partition("-worker-0")[0]: words for uid, words in decision.words.items()}


def workers(job: str, count: int) -> list[str]:
    return [f"{job}-worker-{index}" for index in range(count)]


def test_one_for_which_there_is_not_holds_nothing_and_says_what_is_missing() -> None:
    running = map(bound, gang_pods("a", 1, 1, 1))
    placed, words = look(*running, *gang_pods("b", *[1] * 7))
    assert placed == []
    assert words["b"] == f"5 of 7 can be placed, missing 2 {GPU}"


@pytest.mark.parametrize("blocked", [[0], [1], [0, 1]])
def test_a_gang_one_of_whose_pods_is_blocked_waits_whole_and_lets_others_pass(blocked: list[int]) -> None:
    pods = gang_pods("a", 1, 1)
    why = {pods[index]["metadata"]["uid"]: 'persistentvolumeclaim "data" not found' for index in blocked}
    placed, words = look(*pods, *gang_pods("b", *[1] * 8), blocked=why)
    assert placed == workers("b", 8)
    assert set(words.values()) == {'0/1 nodes are available: persistentvolumeclaim "data" not found.'}


@pytest.mark.parametrize(("waited", "is_told"), [(0.0, False), (1.9, False), (2.1, True), (60.0, True)])
def test_a_job_whose_pods_are_just_being_created_is_not_said_to_wait(waited: float, is_told: bool) -> None:
    """Or every job of several pods would say once in its life that it can't be placed."""
    pods, now = StoredPods(), [0.0]
    for pod in gang_pods("a", 1, 1)[:1]:
        pods.write(pod["metadata"]["name"], pod)
    pods.watch()
    scheduler = scheduler_of(pods, clock=lambda: now[0])
    assert asyncio.run(scheduler._pass()) == FORMING_SECONDS
    now[0] = waited
    again = asyncio.run(scheduler._pass())
    said = [each["message"] for pod in pods.stored.values() for each in pod["status"].get("conditions", [])]
    assert said == (["0 of 2 can be placed: 1 of its pods exist so far"] if is_told else [])
    assert again == (None if is_told else pytest.approx(FORMING_SECONDS - waited))


async def test_jobs_are_told_what_they_wait_for_while_the_pods_of_another_are_being_placed() -> None:
    pods = StoredPods()
    for pod in (*gang_pods("a", *[1] * 8), *gang_pods("b", 1)):
        pods.write(pod["metadata"]["name"], pod)
    pods.watch()
    told, bind = asyncio.Event(), pods.create

    async def patched(path: str, body: Any, *rest: Any) -> None:
        await StoredPods.patch(pods, path, body, *rest)
        told.set()

    async def binds_when_told(path: str, binding: Any, **options: Any) -> None:
        await told.wait()
        await bind(path, binding, **options)

    pods.patch, pods.create = patched, binds_when_told  # type: ignore[method-assign]
    async with asyncio.timeout(MOMENT):
        await scheduler_of(pods)._pass()
    (said,) = pods.stored["b-worker-0"]["status"]["conditions"]
    assert said["message"] == f"0 of 1 can be placed, missing 1 {GPU}"
    assert all(pods.stored[name]["spec"]["nodeName"] for name in workers("a", 8))


@pytest.mark.parametrize(("ahead", "words"), [(19, "19 jobs"), (20, "20 or more jobs"), (199, "100 or more jobs")])
def test_a_long_queue_is_counted_by_its_first_digit(ahead: int, words: str) -> None:
    said = look(bound(gang_pods("runs", 8)[0]), *(gang_pods(f"job-{each}", 1)[0] for each in range(ahead + 1)))[1]
    assert said[f"job-{ahead}"] == f"0 of 1 can be placed, missing 1 {GPU}; {words} before it in the queue"


@pytest.mark.exhaustive
def test_the_number_of_messages_written_in_a_time_does_not_grow_with_the_pods_that_wait() -> None:
    """Each job that ends changes the messages of all that wait: here 200 of them, one job a second."""
    pods, now = StoredPods(), [0.0]
    for each in range(400):
        (pod,) = gang_pods(f"job-{each:03}", 1 + each % 3)
        pods.write(pod["metadata"]["name"], pod)
    pods.watch()
    scheduler = scheduler_of(pods, clock=lambda: now[0])
    asyncio.run(scheduler._pass())
    pods.watch()
    messages = 0
    for _ in range(200):
        now[0] += 1.0
        running = next(pod for pod in pods.stored.values() if "nodeName" in pod["spec"])
        pods.write(running["metadata"]["name"], None)
        pods.watch()
        asyncio.run(scheduler._pass())
        messages += sum("nodeName" not in pod["spec"] for _, pod in pods.unseen if pod is not None)
        pods.watch()
    assert messages <= 200 / SECONDS_PER_CHANGE + 400


def test_a_pod_with_a_scheduling_gate_keeps_its_gang_waiting() -> None:
    pods = gang_pods("a", 1, 1)
    pods[1]["spec"]["schedulingGates"] = [{"name": "quota"}]
    placed, words = look(*pods)
    assert (placed, words["a"]) == ([], "0 of 2 can be placed: 1 of its pods waits for its scheduling gates")
    pods[0]["spec"]["schedulingGates"] = [{"name": "quota"}]
    third = {**pods[1], "metadata": {**pods[1]["metadata"], "uid": "3"}, "spec": {"containers": []}}
    assert set(look(*pods, third)[1].values()) == {
        "0 of 2 can be placed: 2 of its pods wait for their scheduling gates"
    }


def test_no_small_gang_passes_a_large_one_that_waits_for_the_same() -> None:
    running = map(bound, gang_pods("a", 1, 1, 1))
    large, small = (
        gang_pods("large", *[1] * 7, since="2026-11-22T12:00:01Z"),
        gang_pods("small", 1, since="2026-11-22T12:00:02Z"),
    )
    placed, words = look(*small, *running, *large)
    assert placed == []
    assert words["small"] == ("1 of 1 can be placed, but default/large comes first; 1 job before it in the queue")


def test_one_that_asks_for_other_things_passes() -> None:
    running = map(bound, gang_pods("a", 1, 1, 1))
    without_gpu = gang_pods("cpu", 0, 0, since="2026-11-22T12:00:02Z")
    assert look(*running, *gang_pods("large", *[1] * 7), *without_gpu)[0] == workers("cpu", 2)


def test_age_comes_before_the_order_in_which_they_came() -> None:
    old, older = (gang_pods(name, 4, since=f"2026-11-22T{hour}:00:00Z") for name, hour in (("old", 11), ("older", 10)))
    first, second = gang_pods("first", 4), gang_pods("second", 4)
    placed, words = look(*first, *second, *old, *older)
    assert placed == ["older-worker-0", "old-worker-0"]
    assert words["first"].endswith(f"missing 4 {GPU}")
    assert words["second"].endswith(f"missing 4 {GPU}; 1 job before it in the queue")


def test_one_that_can_never_be_placed_says_so_with_numbers_and_keeps_nobody_waiting() -> None:
    placed, words = look(*gang_pods("huge", *[1] * 9), *gang_pods("small", 8, since="2026-11-22T13:00:00Z"))
    assert placed == ["small-worker-0"]
    assert words["huge"] == (
        f"0/1 nodes are available: 1 Insufficient {GPU}. The job needs 9 {GPU}, this cluster has 8."
    )


def test_it_says_so_of_each_resource_before_all_of_its_pods_exist() -> None:
    pods = gang_pods("huge", 9, 0)[:1]
    pods[0]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2500m", "amd.com/gpu": "1", "memory": "3Gi"}
    assert look(*pods)[1]["huge"].endswith(
        "The job needs 1 amd.com/gpu, this cluster has 0; needs 2.5 cpu, this cluster has 2; needs 3Gi memory, this "
        f"cluster has 0; needs 9 {GPU}, this cluster has 8."
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"nodeSelector": {"zone": "b"}}, "1 node(s) didn't match Pod's node affinity/selector."),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]},
            "1 node(s) can't allocate resource claims (gpu). The local cluster has no drivers for them: ask for devices"
            " in resources.limits instead.",
        ),
    ],
)
def test_what_no_node_can_have_is_said_in_kube_schedulers_words(spec: dict[str, Any], why: str) -> None:
    pods = gang_pods("a", 1, 1)
    pods[1]["spec"].update(spec)
    assert look(*pods) == ([], dict.fromkeys(["a", "a-worker-1"], f"0/1 nodes are available: {why}"))


def test_a_pod_of_no_job_waits_in_the_same_queue_and_in_kube_schedulers_words() -> None:
    placed, words = look(*gang_pods("a", 8), lone_pod("b", 2))
    assert placed == ["a-worker-0"]
    assert words["b"] == f"0/1 nodes are available: 1 Insufficient {GPU}."
    words = look(*map(bound, gang_pods("a", 8)), *gang_pods("c", 8), lone_pod("b", 2))[1]
    assert words["b"] == f"0/1 nodes are available: 1 Insufficient {GPU}; 1 job before it in the queue."


def test_the_rest_of_a_gang_that_has_begun_goes_before_all_others_each_pod_by_itself() -> None:
    begun = gang_pods("a", 4, 2, 8)
    begun[0] = bound(begun[0])
    placed, words = look(*gang_pods("older", 2, since="2026-11-22T11:00:00Z"), *begun)
    assert placed == ["a-worker-1"]
    assert words["a-worker-2"] == f"2 of 3 can be placed, missing 6 {GPU}"


def test_a_replica_that_is_retried_by_itself_does_not_wait_for_those_that_are_done() -> None:
    done, ended, again = gang_pods("a", 1, 1, 1, name="job")
    ended = bound(ended) | {"status": {"phase": "Succeeded"}}
    assert look(bound(done), ended, again)[0] == ["a-worker-2"]


def test_a_pod_that_goes_holds_its_gpus_and_is_no_member() -> None:
    old = [bound(pod) for pod in gang_pods("a", 4, 4)]
    old[0]["metadata"]["deletionTimestamp"] = "2026-11-22T12:30:00Z"
    old[1]["status"] = {"phase": "Failed"}
    placed, words = look(*old, *gang_pods("b", 4, 4, since="2026-11-22T12:10:00Z"))
    assert placed == []
    assert words["b"] == f"1 of 2 can be placed, missing 4 {GPU}"


class TestAMinimum:
    """`schedulingPolicy.minAvailable`: so many pods at once, the others as there is room."""

    def test_the_minimum_is_placed_at_once_and_the_rest_waits_for_room(self) -> None:
        running = map(bound, gang_pods("other", 1, 1, 1))
        placed, words = look(*running, *gang_pods("a", *[1] * 7, minimum=4))
        assert placed == workers("a", 5)
        assert words["a-worker-5"] == words["a-worker-6"] == f"5 of 7 can be placed, missing 2 {GPU}"

    def test_as_many_of_the_smallest_pods_are_taken_as_fit_together(self) -> None:
        assert look(*gang_pods("a", 6, 3, 0, 3, minimum=3))[0] == ["a-worker-1", "a-worker-2", "a-worker-3"]

    def test_pods_that_are_still_to_come_are_not_waited_for(self) -> None:
        assert look(*gang_pods("a", *[1] * 7, minimum=4)[:4])[0] == workers("a", 4)
        placed, words = look(*gang_pods("a", *[1] * 7, minimum=4)[:3])
        assert (placed, words["a"]) == ([], "0 of 7 can be placed: 3 of its pods exist so far")

    def test_a_pod_of_the_rest_that_never_fits_keeps_nobody_waiting(self) -> None:
        younger = gang_pods("b", 6, since="2026-11-22T12:00:01Z")
        placed, words = look(*gang_pods("a", 1, 1, 9, minimum=2), *younger)
        assert placed == ["a-worker-0", "a-worker-1", "b-worker-0"]
        assert words["a-worker-2"].endswith(f"The pod needs 9 {GPU}, this cluster has 8.")

    def test_the_rest_of_one_that_runs_has_the_place_of_its_job_in_the_queue(self) -> None:
        runs = gang_pods("a", 4, 4, 4, minimum=1)
        runs[0] = bound(runs[0])
        older = gang_pods("older", 4, since="2026-11-22T11:00:00Z")
        assert look(*runs, *older)[0] == ["older-worker-0"]
        younger = gang_pods("younger", 4, since="2026-11-22T13:00:00Z")
        assert look(*runs, *younger)[0] == ["a-worker-1"]

    def test_one_that_fell_below_its_minimum_goes_before_all_others(self) -> None:
        fell = gang_pods("a", 4, 4, 0, minimum=2)
        fell[0] = bound(fell[0])
        placed, _ = look(*gang_pods("older", 4, since="2026-11-22T11:00:00Z"), *fell)
        assert placed == workers("a", 3)[1:]

    def test_more_than_the_job_has_is_never_placed_and_keeps_nobody_waiting(self) -> None:
        placed, words = look(*gang_pods("a", 1, 1, 1, minimum=10), *gang_pods("b", 8, since="2026-11-22T13:00:00Z"))
        assert placed == ["b-worker-0"]
        assert words["a"] == "0 of 3 can be placed: minAvailable is 10, and the job has 3 pods"

    def test_of_numbers_that_differ_while_a_change_reaches_the_pods_the_largest_counts(self) -> None:
        pods = [*gang_pods("a", *[3] * 4, minimum=3)[:1], *gang_pods("a", *[3] * 4, minimum=2)[1:]]
        assert look(*pods)[0] == []
