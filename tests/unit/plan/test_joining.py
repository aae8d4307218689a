"""A gang's pod that is missing: created while nobody can have joined, else the gang restarts."""

import itertools
from typing import Any

import msgspec
import pytest
from builders import NOW, PodBuilder, make_mxjob, make_pod, observe, plan, reads, with_policy

from mxnet_operator.api import conditions
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan import Effects, Reads, reconcile_failed
from mxnet_operator.plan.actions import CreatePod

SHAPES: dict[str, dict[str, int]] = {
    "ps-lite": {"Scheduler": 1, "Server": 1, "Worker": 2},
    "workers only": {"Worker": 3},
    "tuning as a gang": {"TunerTracker": 1, "TunerServer": 2, "Tuner": 1},
}

NOTHING_SAID: dict[str, Any] = {
    "conditions": (),
    "state": "",
    "start_time": None,
    "started_replicas": {},
    "replica_statuses": {},
    "ready": "",
}


def begun(shape: str, restart: str = "ExitCode", policy: dict[str, Any] | None = None, **status: Any) -> MXJob:
    """A gang that this controller has begun, in its first attempt, and that never said Running."""
    builder = make_mxjob().run_policy(restartScope="Job", **(policy or {})).condition("Created")
    for replica_type, count in SHAPES[shape].items():
        builder = builder.replicas(replica_type, count)
    job = builder.restart(restart).obj()
    known = {"started_replicas": SHAPES[shape]} | status
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, **known))


def all_pods(job: MXJob, shape: str) -> list[PodBuilder]:
    return [
        make_pod(job, replica_type, index) for replica_type, count in SHAPES[shape].items() for index in range(count)
    ]


def restarts(answer: Effects) -> int:
    return 0 if answer.status is None else answer.status.restarts


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not yet recorded"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_member_that_is_missing_once_all_have_existed_restarts_the_gang(shape: str, recorded: bool) -> None:
    job = begun(shape, created_attempts=1 if recorded else 0)
    pods = [pod.running() for pod in all_pods(job, shape)]
    for missing in range(len(pods)):
        answer = plan(job, observe(job, *pods[:missing], *pods[missing + 1 :]), NOW)
        if recorded or missing:  # The first of each list is what is created last: that it is there proves the others.
            assert (restarts(answer), answer.actions) == (1, ()), missing
        else:
            assert [action.is_last for action in answer.actions if isinstance(action, CreatePod)] == [True]


@pytest.mark.parametrize("shape", SHAPES)
def test_whoever_is_missing_before_the_last_was_created_is_created_though_others_run(shape: str) -> None:
    """A quota refused it, say, or its creator died: nobody can have joined."""
    job = begun(shape)
    _, _, *others = all_pods(job, shape)
    answer = plan(job, observe(job, *(pod.running() for pod in others)), NOW)
    created = [action for action in answer.actions if isinstance(action, CreatePod)]
    assert (restarts(answer), len(created)) == (0, 2)
    assert [action.is_last for action in created] == [False, True]


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not yet recorded"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_ended_with_0_before_the_last_was_created_keeps_none_of_the_others_from_being_created(
    shape: str, recorded: bool
) -> None:
    """A quota that holds back the rest, an answer of 5xx, a controller that dies while it creates: nobody is gone."""
    counts = SHAPES[shape]
    numbers = range(1, sum(counts.values()) - counts.get("Tuner", 0))  # A Tuner's success alone is the job's.
    for restart, ended in itertools.product(("Never", "OnFailure", "Always", "ExitCode"), numbers):
        job = begun(shape, restart)
        root, *pods = all_pods(job, shape)
        done = pods[ended - 1].succeeded().obj()
        seen = [pods[ended - 1]]
        if recorded:
            seen, job = [], begun(shape, restart, completed_indexes={done.type: str(done.index)})
        answer = plan(job, observe(job, *seen), NOW)
        created = [(action.type, action.index) for action in answer.actions if isinstance(action, CreatePod)]
        others = [(pod.obj().type, pod.obj().index) for number, pod in enumerate(pods, 1) if number != ended]
        assert (created, restarts(answer)) == ([*others, (root.obj().type, root.obj().index)], 0), (restart, ended)
        assert answer.status is None or answer.status.state == "Created"


def test_one_that_is_missing_while_none_of_the_others_has_started_is_created() -> None:
    job = begun("ps-lite", created_attempts=1)
    answer = plan(job, observe(job, *all_pods(job, "ps-lite")[:-1]), NOW)
    assert answer.actions == (CreatePod("Worker", 1, 0),)


def test_under_never_a_member_that_is_known_to_have_gone_fails_the_job() -> None:
    job = begun("ps-lite", "Never", created_attempts=1)
    answer = plan(job, observe(job, *(pod.running() for pod in all_pods(job, "ps-lite")[:-1])), NOW)
    assert answer.status.state == "Failed"
    assert "worker-1 is gone: its pod was removed while the job ran." in answer.status.conditions[-1].message


def test_that_all_pods_exist_is_recorded_where_the_creator_could_not() -> None:
    job = begun("ps-lite")
    answer = plan(job, observe(job, *all_pods(job, "ps-lite")), NOW)
    assert answer.status.created_attempts == 1


def test_nothing_follows_from_what_another_operator_created_first() -> None:
    job = begun("ps-lite", started_replicas={})
    answer = plan(job, observe(job, *(pod.running() for pod in all_pods(job, "ps-lite")[:-1])), NOW)
    assert answer.actions == (CreatePod("Worker", 1, 0),)


def test_a_job_is_suspended_as_one_that_has_run_once_all_its_pods_have_existed() -> None:
    job = begun("ps-lite", created_attempts=1)
    assert restarts(plan(with_policy(job, suspend=True), observe(job), NOW)) == 1


def reported(job: MXJob, *, state: bool = True) -> MXJob:
    """A new job of which nothing has been said but that it can't be reconciled; an older CRD drops the `state`."""
    told = reconcile_failed(job.metadata.name, (), "Forbidden", "The API server answers 403", NOW)
    said = msgspec.structs.replace(job.status, conditions=told, state=conditions.state_of(told) if state else "")
    return msgspec.structs.replace(job, status=said)


@pytest.mark.parametrize("state", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_new_job_that_could_not_be_reconciled_at_first_is_begun_as_any_new_one(shape: str, state: bool) -> None:
    new = begun(shape, policy={"schedulingPolicy": {"queue": "a"}}, **NOTHING_SAID)
    job = reported(new, state=state)
    root, *others = all_pods(job, shape)
    answer, of_new = plan(job, observe(job), NOW), plan(new, observe(new), NOW)
    assert (answer.actions, answer.events) == (of_new.actions, of_new.events)
    assert not reads(job, observe(job), NOW).pods
    quota = plan(job, observe(job, others[0].running()), NOW)
    assert restarts(quota) == 0
    last = [action for action in quota.actions if isinstance(action, CreatePod)][-1]
    assert (last.type, last.index, last.is_last) == (root.obj().type, root.obj().index, True)


def test_what_another_operator_began_is_that_also_where_it_could_not_be_reconciled_since() -> None:
    job = begun("ps-lite", started_replicas={})
    told = reconcile_failed(job.metadata.name, job.status.conditions, "Forbidden", "The API server answers 403", NOW)
    job = msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, conditions=told))
    assert reads(job, observe(job), NOW) == Reads(pods="owned")
    answer = plan(job, observe(job, *(pod.running() for pod in all_pods(job, "ps-lite")[:-1])), NOW)
    assert answer.actions == (CreatePod("Worker", 1, 0),)
