"""Pods of which a scheduler says nothing, and pods that end without a word about their container."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, PodBuilder, condition, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.types import MXJob

SECOND = timedelta(seconds=1)


def ignored(job: MXJob, index: int = 0) -> PodBuilder:
    return make_pod(job, "Worker", index).unscheduled().set(created_at=NOW, scheduler_name="volcano")


def test_a_pod_that_no_scheduler_has_looked_at_for_a_minute_names_its_scheduler() -> None:
    job = make_mxjob().worker(2).condition("Created").obj()
    pods = [ignored(job), make_pod(job, "Worker", 1)]
    before = plan(job, observe(job, *pods), NOW + 59 * SECOND)
    assert condition(before, "PodsScheduled") is None
    assert before.requeue_after == SECOND
    told = condition(plan(job, observe(job, *pods), NOW + 60 * SECOND), "PodsScheduled")
    assert (told.status, told.reason) == ("False", "NoScheduler")
    assert told.message == ("worker-0 can't be placed: no scheduler has reported on it. Does one named volcano run?")


def test_a_scheduler_that_places_another_pod_of_the_job_has_a_minute_more() -> None:
    job = make_mxjob().worker(3).condition("Created").obj()
    placed = make_pod(job, "Worker", 1).set(node_name="n", scheduled_at=NOW + 50 * SECOND, scheduler_name="volcano")
    other = make_pod(job, "Worker", 2).set(node_name="n", scheduled_at=NOW + 90 * SECOND, scheduler_name="other")
    pods = [ignored(job), placed, other]
    busy = plan(job, observe(job, *pods), NOW + 109 * SECOND)
    assert condition(busy, "PodsScheduled") is None
    assert busy.requeue_after == SECOND
    assert condition(plan(job, observe(job, *pods), NOW + 110 * SECOND), "PodsScheduled") is not None


def test_words_about_one_pod_stand_for_those_that_their_scheduler_has_not_reported_on() -> None:
    job = make_mxjob().worker(2).condition("Created").obj()
    words = "1 of 2 can be placed, missing 1 cpu"
    pods = [ignored(job), ignored(job, 1).set(unschedulable=words)]
    told = condition(plan(job, observe(job, *pods), NOW + 90 * SECOND), "PodsScheduled")
    assert (told.reason, told.message) == ("Unschedulable", words)


def test_that_every_pod_has_a_node_is_not_said_while_one_has_none() -> None:
    job = make_mxjob().worker(2).condition("Created").obj()
    waiting = plan(job, observe(job, ignored(job).set(unschedulable="no"), ignored(job, 1)), NOW)
    assert waiting.status is not None
    job = msgspec.structs.replace(job, status=waiting.status)
    placed = make_pod(job, "Worker", 0).set(node_name="n", scheduled_at=NOW)
    told = condition(plan(job, observe(job, placed, ignored(job, 1)), NOW + SECOND), "PodsScheduled")
    assert told is None or told.status == "False"
    both = [placed, make_pod(job, "Worker", 1).set(node_name="n", scheduled_at=NOW)]
    told = condition(plan(job, observe(job, *both), NOW + SECOND), "PodsScheduled")
    assert told.status == "True"


@pytest.mark.parametrize(
    "seen", [{"node_name": "n"}, {"scheduled_at": NOW}, {"phase": "Running"}, {"deleting": True}, {"created_at": None}]
)
def test_one_that_was_seen_or_goes_is_none(seen: dict[str, object]) -> None:
    job = make_mxjob().worker(1).run_policy(restartScope="Replica").condition("Created").obj()
    answer = plan(job, observe(job, ignored(job).set(**seen)), NOW + 3600 * SECOND)
    assert condition(answer, "PodsScheduled") is None


def unheard_of(job: MXJob, index: int = 0) -> PodBuilder:
    """A pod of a template with a nodeName: no scheduler binds it, and only that node's kubelet says more of it."""
    return make_pod(job, "Worker", index).set(node_name="gpu-1", created_at=NOW)


def test_a_pod_of_which_its_node_has_said_nothing_for_a_minute_names_the_node() -> None:
    job = make_mxjob().worker(2).condition("Created").obj()
    pods = [unheard_of(job), make_pod(job, "Worker", 1).running()]
    before = plan(job, observe(job, *pods), NOW + 59 * SECOND)
    assert condition(before, "PodsStarted") is None
    assert before.requeue_after == SECOND
    told = condition(plan(job, observe(job, *pods), NOW + 60 * SECOND), "PodsStarted")
    assert (told.status, told.reason) == ("False", "KubeletNotReporting")
    assert told.message == "worker-0 can't start: node gpu-1 has not reported on it. Does it exist, and is it ready?"


def test_a_bound_pod_is_waited_for_from_its_binding_on() -> None:
    job = make_mxjob().worker(1).condition("Created").obj()
    bound = unheard_of(job).set(scheduled_at=NOW + 100 * SECOND)
    assert condition(plan(job, observe(job, bound), NOW + 159 * SECOND), "PodsStarted") is None
    assert condition(plan(job, observe(job, bound), NOW + 160 * SECOND), "PodsStarted") is not None


@pytest.mark.parametrize(
    "heard",
    [
        {"waiting_reason": "ContainerCreating"},
        {"phase": "Running"},
        {"deleting": True},
        {"unschedulable": "no"},
        {"reported": True},
    ],
)
def test_a_node_that_has_spoken_of_a_pod_is_not_silent_and_what_was_said_is_taken_back(heard: dict[str, Any]) -> None:
    job = make_mxjob().worker(2).run_policy(restartScope="Replica").condition("Created").obj()
    silent = plan(job, observe(job, unheard_of(job), unheard_of(job, 1)), NOW + 60 * SECOND)
    assert silent.status is not None
    job = msgspec.structs.replace(job, status=silent.status)
    pods = [unheard_of(job, index).set(**heard) for index in range(2)]
    answer = plan(job, observe(job, *pods), NOW + 3600 * SECOND)
    told = condition(answer, "PodsStarted")
    assert told is None or told.status == "True"


def test_once_the_scheduler_speaks_its_own_words_are_told() -> None:
    job = make_mxjob().worker(1).condition("Created").obj()
    words = ignored(job).set(unschedulable="0/3 nodes are available")
    told = condition(plan(job, observe(job, words), NOW + 90 * SECOND), "PodsScheduled")
    assert (told.reason, told.message) == (
        "Unschedulable",
        "0 of 1 placed: worker-0 can't be placed: 0/3 nodes are available",
    )


@pytest.mark.parametrize("kind", ["Worker", "Tuner"])
def test_a_phase_succeeded_without_a_container_is_success_and_the_job_says_that_it_believes_it(kind: str) -> None:
    job = make_mxjob().replicas(kind, 1).condition("Created").condition("Running").obj()
    answer = plan(job, observe(job, make_pod(job, kind).set(phase="Succeeded")), NOW)
    assert answer.status.state == "Succeeded"
    told = condition(answer, "ExitCodeUnknown")
    assert told.message == (
        f"The exit code of {kind.lower()}-0 is unknown, since its pod has phase Succeeded and no status of the"
        " container mxnet: the phase decides."
    )
    assert [(event.type, event.reason) for event in answer.events] == [
        ("Warning", "ExitCodeUnknown"),
        ("Normal", "MXJobSucceeded"),
    ]


def test_of_a_gang_it_is_told_while_the_others_run() -> None:
    job = make_mxjob().scheduler().worker(2).condition("Created").condition("Running").obj()
    pods = [make_pod(job, "Scheduler").running(), make_pod(job, "Worker", 1).running()]
    answer = plan(job, observe(job, *pods, make_pod(job, "Worker", 0).set(phase="Succeeded")), NOW)
    told = condition(answer, "ExitCodeUnknown")
    assert told.status == "True"
    assert answer.status.completed_indexes == {"Worker": "0"}


@pytest.mark.parametrize(
    ("why", "is_told"),
    [({}, True), ({"pod_reason": "Evicted"}, False), ({"disruption": "EvictionByEvictionAPI"}, False)],
)
def test_a_phase_failed_without_a_container_fails_by_the_phase(why: dict[str, str], is_told: bool) -> None:
    job = make_mxjob().worker(1).condition("Created").condition("Running").obj()
    answer = plan(job, observe(job, make_pod(job, "Worker").set(phase="Failed", **why)), NOW)
    assert answer.status.state == "Failed"
    assert (condition(answer, "ExitCodeUnknown") is not None) == is_told


def test_a_phase_succeeded_of_a_pod_that_was_taken_away_is_no_success() -> None:
    job = make_mxjob().worker(1).restart("ExitCode").condition("Created").condition("Running").obj()
    pod = make_pod(job, "Worker").set(phase="Succeeded", disruption="EvictionByEvictionAPI")
    answer = plan(job, observe(job, pod), NOW)
    assert answer.status.state == "Restarting"
