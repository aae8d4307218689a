"""A change of the number of replicas: not followed by a job that runs, and followed by one that was suspended."""

from datetime import timedelta

import msgspec
import pytest
from builders import NOW, after, condition, make_mxjob, make_pod, plan, with_policy

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import Condition, MXJob, ReplicaSpec
from mxnet_operator.builders import build_pod
from mxnet_operator.plan import Effects, Observed, PodView
from mxnet_operator.plan.actions import CreatePod, DeletePod
from mxnet_operator.plan.started import as_started


def with_spec(job: MXJob, *, suspend: bool | None = None, **counts: int | None) -> MXJob:
    """The job after a user changed its suspension or the numbers of replicas; None takes a type away."""
    specs = dict(job.spec.mx_replica_specs)
    template = next(iter(specs.values())).template
    for kind, count in counts.items():
        if count is None:
            del specs[kind]
        else:
            specs[kind] = msgspec.structs.replace(specs.get(kind, ReplicaSpec(template=template)), replicas=count)
    policy = job.spec.run_policy
    if suspend is not None:
        policy = msgspec.structs.replace(policy, suspend=suspend)
    return msgspec.structs.replace(
        job, spec=msgspec.structs.replace(job.spec, mx_replica_specs=specs, run_policy=policy)
    )


def pods_of(job: MXJob, count: int, attempt: int = 0) -> tuple[PodView, ...]:
    return tuple(make_pod(job, "Worker", index).running().set(attempt=attempt).obj() for index in range(count))


def running(workers: int = 2, policy: str = "ExitCode", scope: str = "") -> MXJob:
    """A job of workers only that runs, with what it was started with in its status."""
    builder = make_mxjob().worker(workers).restart(policy)
    if scope:
        builder.run_policy(restartScope=scope)
    job = after(builder.obj(), plan(builder.obj(), Observed(), NOW))
    return after(job, plan(job, Observed(pods_of(job, workers)), NOW))


def suspended(job: MXJob) -> MXJob:
    """The job, suspended and with its pods gone."""
    job = with_spec(job, suspend=True)
    workers = job.spec.mx_replica_specs["Worker"].replicas or 0
    job = after(job, plan(job, Observed(pods_of(job, workers)), NOW))
    return after(job, plan(job, Observed(), NOW))


def ignored(job: MXJob) -> Condition | None:
    return condition(job, "ReplicasChangeIgnored")


def created(answer: Effects) -> list[CreatePod]:
    return [action for action in answer.actions if isinstance(action, CreatePod)]


def test_the_first_status_records_what_the_job_is_started_with() -> None:
    job = make_mxjob().gang(servers=3, workers=2).obj()
    assert after(job, plan(job, Observed(), NOW)).status.started_replicas == {"Scheduler": 1, "Server": 3, "Worker": 2}
    job = make_mxjob().worker(None).obj()
    assert after(job, plan(job, Observed(), NOW)).status.started_replicas == {"Worker": 1}


class TestWhileItRuns:
    @pytest.mark.parametrize("workers", [1, 3])
    def test_a_change_is_not_followed_and_the_job_says_so_once(self, workers: int) -> None:
        job = with_spec(running(), Worker=workers)
        answer = plan(job, Observed(pods_of(job, 2)), NOW)
        assert created(answer) == []
        (event,) = answer.events
        assert (event.type, event.reason) == ("Warning", "ReplicasChangeIgnored")
        job = after(job, answer)
        condition = ignored(job)
        assert (condition.status, condition.reason, condition.message) == ("True", "NotSuspended", event.message)
        assert f"Worker from 2 to {workers}" in condition.message
        assert job.status.state == "Running"
        again = plan(job, Observed(pods_of(job, 2)), NOW)
        assert (created(again), again.status, again.events) == ([], None, ())

    def test_a_restart_brings_back_what_was_started(self) -> None:
        job = with_spec(running(), Worker=3)
        failed = make_pod(job, "Worker", 1).failed(137).obj()
        job = after(job, plan(job, Observed((pods_of(job, 1)[0], failed)), NOW))
        answer = plan(job, Observed(), NOW.replace(hour=13))
        assert sorted((pod.index, pod.attempt) for pod in created(answer)) == [(0, 1), (1, 1)]

    def test_a_type_that_is_added_or_taken_away_is_named(self) -> None:
        job = with_spec(running(), Scheduler=1)
        answer = plan(job, Observed(pods_of(job, 2)), NOW)
        assert created(answer) == []
        assert "Scheduler from 0 to 1" in answer.events[0].message
        gang = make_mxjob().scheduler().worker(2).obj()
        gang = with_spec(after(gang, plan(gang, Observed(), NOW)), Scheduler=None)
        assert "Scheduler from 1 to 0" in plan(gang, Observed(pods_of(gang, 2)), NOW).events[0].message

    def test_a_type_that_was_taken_away_still_decides(self) -> None:
        gang = make_mxjob().scheduler().worker(2).obj()
        gang = with_spec(after(gang, plan(gang, Observed(), NOW)), Worker=None)
        done = make_pod(gang, "Scheduler").succeeded().obj()
        assert after(gang, plan(gang, Observed((done, *pods_of(gang, 2))), NOW)).status.state == "Running"
        failed = make_pod(gang, "Worker", 1).failed(1).obj()
        status = after(gang, plan(gang, Observed((done, pods_of(gang, 1)[0], failed)), NOW)).status
        assert status.state == "Failed"
        assert "worker-1 exited with code 1" in status.conditions[-1].message

    def test_its_pods_can_be_described_though_no_server_takes_them(self) -> None:
        gang = make_mxjob().scheduler().server(1).worker(2).obj()
        gang = with_spec(after(gang, plan(gang, Observed(), NOW)), Scheduler=None)
        (container,) = build_pod(as_started(with_defaults(gang)), "Scheduler", 0, 1)["spec"]["containers"]
        assert "image" not in container

    def test_taking_the_change_back_ends_it(self) -> None:
        job = with_spec(running(), Worker=3)
        job = with_spec(after(job, plan(job, Observed(pods_of(job, 2)), NOW)), Worker=2)
        condition = ignored(after(job, plan(job, Observed(pods_of(job, 2)), NOW)))
        assert (condition.status, condition.reason) == ("False", "SpecInSync")

    def test_a_suspension_that_was_taken_back_before_the_pods_were_gone_changes_nothing(self) -> None:
        job = with_spec(running(), suspend=True, Worker=1)
        job = after(job, plan(job, Observed(pods_of(job, 2)), NOW))
        job = with_spec(job, suspend=False)
        half_gone = tuple(msgspec.structs.replace(pod, deleting=True) for pod in pods_of(job, 2)[:1])
        answer = plan(job, Observed(half_gone), NOW)
        job = after(job, answer)
        assert (job.status.state, answer.events[-1].reason) == ("Created", "ReplicasChangeIgnored")
        assert sorted((pod.index, pod.attempt) for pod in created(plan(job, Observed(), NOW))) == [(0, 1), (1, 1)]


class TestSuspended:
    @pytest.mark.parametrize("scope", ["Job", "Replica"])
    @pytest.mark.parametrize("workers", [1, 2, 4])
    def test_a_resumed_job_has_the_number_of_its_spec(self, workers: int, scope: str) -> None:
        job = suspended(running(scope=scope))
        assert job.status.started_replicas == {}
        assert plan(job, Observed(), NOW) == Effects()
        job = with_spec(job, Worker=workers)
        assert plan(job, Observed(), NOW) == Effects()
        job = with_spec(job, suspend=False)
        answer = plan(job, Observed(), NOW)
        assert sorted((pod.index, pod.attempt) for pod in created(answer)) == [(index, 1) for index in range(workers)]
        job = after(job, answer)
        assert job.status.started_replicas == {"Worker": workers}
        job = after(job, plan(job, Observed(pods_of(job, workers, attempt=1)), NOW))
        assert (job.status.state, job.status.replica_statuses["Worker"].active) == ("Running", workers)
        assert ignored(job) is None

    def test_a_change_that_was_ignored_takes_effect(self) -> None:
        job = with_spec(running(), Worker=3)
        job = suspended(after(job, plan(job, Observed(pods_of(job, 2)), NOW)))
        assert ignored(job).status == "False"
        assert len(created(plan(with_spec(job, suspend=False), Observed(), NOW))) == 3

    def test_what_was_done_beyond_the_new_number_is_forgotten_and_the_rest_kept(self) -> None:
        """Replicas that come again one by one (restartScope Replica) do not run again when they are done."""
        job = running(4, scope="Replica")
        done = tuple(make_pod(job, "Worker", index).succeeded().obj() for index in (1, 3))
        pods = (*done, *(pod for pod in pods_of(job, 4) if pod.index in (0, 2)))
        job = after(job, plan(job, Observed(pods), NOW.replace(hour=13)))
        assert job.status.completed_indexes == {"Worker": "1,3"}
        job = with_spec(suspended(job), suspend=False, Worker=3)
        answer = plan(job, Observed(), NOW)
        assert [pod.index for pod in created(answer)] == [0, 2]
        assert after(job, answer).status.completed_indexes == {"Worker": "1"}
        assert after(job, answer).status.replica_statuses["Worker"].succeeded == 1


class TestTheScopeOfARestart:
    @pytest.mark.parametrize(("before", "after_"), [("Replica", "Job"), ("Job", "Replica")])
    def test_a_sound_job_runs_on_whatever_its_scope_becomes_and_says_that_it_does(
        self, before: str, after_: str
    ) -> None:
        """From Replica to Job it tore a sound gang down, "worker-1 is gone", since its pods had several numbers."""
        job = running(scope=before)
        failed = make_pod(job, "Worker", 1).failed(137)
        restarted = after(job, plan(job, Observed((*pods_of(job, 1), failed.obj())), NOW))
        attempts = {"Replica": (0, 1), "Job": (1, 1)}[before]
        pods = Observed(
            tuple(
                make_pod(job, "Worker", index).running().set(attempt=attempt, uid=f"{index}-{attempt}").obj()
                for index, attempt in enumerate(attempts)
            )
        )
        later = NOW + timedelta(minutes=1)
        runs = after(restarted, plan(restarted, pods, later))
        edited = with_policy(runs, restart_scope=after_)
        answer = plan(edited, pods, later)
        assert not [action for action in answer.actions if isinstance(action, CreatePod | DeletePod)]
        status = after(edited, answer).status
        assert (status.state, status.restarts) == ("Running", 1)
        told = ignored(after(edited, answer))
        assert f"restartScope from {before} to {after_}" in told.message

    def test_a_change_takes_effect_when_the_job_is_suspended_and_resumed(self) -> None:
        job = suspended(with_policy(running(scope="Replica"), restart_scope="Job"))
        assert job.status.started_scope == ""
        resumed = with_spec(job, suspend=False)
        assert after(resumed, plan(resumed, Observed(), NOW)).status.started_scope == "Job"
