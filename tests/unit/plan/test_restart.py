"""What is tried again, in what scope, how it is counted, and how long it waits: the tables of docs/semantics.md."""

from datetime import timedelta

import msgspec
import pytest
from builders import NOW, JobBuilder, PodBuilder, after, make_mxjob, make_pod, make_services, plan

from mxnet_operator.api.types import MXJob, MXJobStatus, TrainingStatus
from mxnet_operator.plan import Effects, Observed
from mxnet_operator.plan.actions import CreatePod, DeletePod
from mxnet_operator.plan.failures import given_up, next_attempt
from mxnet_operator.plan.replicas import restart_scope

SECOND = timedelta(seconds=1)


def running(policy: str = "ExitCode", **run_policy: object) -> JobBuilder:
    builder = make_mxjob().gang(servers=1, workers=2).restart(policy)
    if run_policy:
        builder.run_policy(**run_policy)
    return builder.condition("Created").condition("Running")


def gang(job: MXJob, *changed: PodBuilder, attempt: int = 0, without: tuple[str, ...] = ()) -> Observed:
    pods = {
        pod.obj().name: pod.obj()
        for pod in (
            make_pod(job, kind, index).running().set(attempt=attempt)
            for kind, index in (("Scheduler", 0), ("Server", 0), ("Worker", 0), ("Worker", 1))
        )
    }
    pods.update({pod.obj().name: pod.obj() for pod in changed})
    return Observed(tuple(pod for name, pod in pods.items() if name not in without), make_services(job))


def torn_down(job: MXJob, *failed: PodBuilder) -> MXJob:
    return after(job, plan(job, gang(job, *failed), NOW))


def failed_message(status: MXJobStatus | None) -> str:
    assert status.state == "Failed"
    return status.conditions[-1].message


class TestWhatIsRetried:
    @pytest.mark.parametrize("code", [130, 134, 137, 138, 143])
    def test_a_retryable_exit_code_restarts_the_gang(self, code: int) -> None:
        job = running().obj()
        trained = msgspec.structs.replace(job.status, training=TrainingStatus(epoch=3))
        job = msgspec.structs.replace(job, status=trained)
        answer = plan(job, gang(job, make_pod(job, "Worker", 1).failed(code, "killed\n")), NOW)
        assert (answer.actions, answer.status.training) == ((), None)
        assert (answer.status.state, answer.status.restarts) == ("Restarting", 1)
        assert answer.status.restarts_count_towards_max == 1
        (event,) = answer.events
        assert (event.type, event.reason) == ("Warning", "MXJobRestarting")
        for words in ("job digits is restarting", f"worker-1 exited with code {code}", "killed"):
            assert words in event.message

    def test_the_jobs_own_lists_come_before_the_table(self) -> None:
        job = running(exitCodes={"retryable": [3], "permanent": [143]}).obj()
        assert plan(job, gang(job, make_pod(job, "Worker").failed(3)), NOW).status.state == "Restarting"
        failed_message(plan(job, gang(job, make_pod(job, "Worker").failed(143)), NOW).status)


class TestTheGang:
    def test_every_pod_of_the_old_attempt_goes_and_none_of_the_new_comes_before_they_are_gone(self) -> None:
        job = running().obj()
        failed = make_pod(job, "Worker").failed(137)
        job = torn_down(job, failed)
        answer = plan(job, gang(job, failed), NOW + 60 * SECOND)
        assert {action.name for action in answer.actions if isinstance(action, DeletePod)} == {
            "digits-scheduler-0",
            "digits-server-0",
            "digits-worker-0",
            "digits-worker-1",
        }
        assert answer.status is None
        one_left = Observed((make_pod(job, "Server").running().deleting().obj(),), make_services(job))
        assert plan(job, one_left, NOW + 60 * SECOND).actions == ()
        gone = plan(job, Observed((), make_services(job)), NOW + 60 * SECOND)
        assert gone.actions == (
            CreatePod("Scheduler", 0, 1),
            CreatePod("Server", 0, 1),
            CreatePod("Worker", 0, 1),
            CreatePod("Worker", 1, 1),
        )

    def test_servers_get_no_grace_and_workers_their_own(self) -> None:
        job = running().obj()
        job = torn_down(job, make_pod(job, "Worker").failed(137))
        grace = {
            action.name: action.grace for action in plan(job, gang(job), NOW).actions if isinstance(action, DeletePod)
        }
        assert grace["digits-server-0"] == grace["digits-scheduler-0"] == 1
        assert grace["digits-worker-0"] is None


class TestBackoffLimit:
    @pytest.mark.parametrize("limit", [0, 1, 3])
    def test_the_job_fails_with_one_failure_more_than_the_limit(self, limit: int) -> None:
        job = running(backoffLimit=limit).obj()
        for attempt in range(limit):
            failed = make_pod(job, "Worker").failed(137).set(attempt=attempt)
            job = after(job, plan(job, gang(job, failed, attempt=attempt), NOW))
            assert job.status.restarts_count_towards_max == attempt + 1
        failed = make_pod(job, "Worker").failed(137).set(attempt=limit)
        message = failed_message(plan(job, gang(job, failed, attempt=limit), NOW).status)
        assert message.startswith("Job digits has failed because it has reached the specified backoff limit")


class TestBackOff:
    def waits(self, job: MXJob) -> float:
        wait = plan(job, Observed((), make_services(job)), NOW).requeue_after
        return 0 if wait is None else wait.total_seconds()

    def test_it_begins_at_ten_seconds_and_doubles_up_to_ten_minutes(self) -> None:
        job = running(backoffLimit=100).obj()
        for attempt, least in enumerate([10, 20, 40, 80, 160, 320, 600, 600]):
            failed = make_pod(job, "Worker").failed(137).set(attempt=attempt)
            job = after(job, plan(job, gang(job, failed, attempt=attempt), NOW))
            assert least <= self.waits(job) <= least * 1.1
            assert plan(job, Observed((), make_services(job)), NOW).actions == ()

    def test_it_is_waited_for_by_whoever_looks_and_by_no_clock_that_was_set_back(self) -> None:
        job = torn_down(running().obj(), make_pod(running().obj(), "Worker").failed(137))

        def look(seconds: int) -> Effects:
            return plan(job, Observed((), make_services(job)), NOW + seconds * SECOND)

        assert look(3).requeue_after == look(0).requeue_after - 3 * SECOND
        assert look(9).actions == ()
        for at in (12, -120, -3600, -3600 * 24 * 365):
            assert [type(action) for action in look(at).actions] == [CreatePod] * 4, at
        for behind in (-1, -10, -60):  # The clock of another leader: it does not cut the wait short.
            assert 10 * SECOND <= look(behind).requeue_after <= (60 + 11) * SECOND

    @pytest.mark.parametrize(("failures", "least"), [(1, 10), (2, 20)])
    def test_once_failures_count_it_goes_by_their_number_alone(self, failures: int, least: int) -> None:
        job = running(backoffLimit=100).obj()
        for attempt in range(failures):
            failed = make_pod(job, "Worker").failed(137).set(attempt=attempt)
            job = after(job, plan(job, gang(job, failed, attempt=attempt), NOW))
        for attempt in (failures, failures + 1):
            job = after(job, plan(job, gang(job, attempt=attempt), NOW))
            drained = make_pod(job, "Worker").deleting().set(attempt=attempt)
            job = after(job, plan(job, gang(job, drained, attempt=attempt), NOW))
            assert least <= self.waits(job) <= least * 1.1

    @pytest.mark.parametrize("scope", ["Job", "Replica"])
    @pytest.mark.parametrize("suspensions", [0, 1, 3, 7])
    @pytest.mark.parametrize(("disruptions", "least"), [(1, 0), (2, 10), (3, 20)])
    def test_suspensions_and_evictions_from_a_queue_do_not_lengthen_it(
        self, scope: str, suspensions: int, disruptions: int, least: int
    ) -> None:
        job = running("OnFailure", restartScope=scope).obj()
        for _ in range(suspensions):
            job = msgspec.structs.replace(job, status=given_up(job))
        for attempt in range(suspensions, suspensions + disruptions):
            drained = make_pod(job, "Worker").deleting().set(uid=f"{attempt}", attempt=attempt)
            job = after(job, plan(job, gang(job, attempt=attempt), NOW)) if attempt > suspensions else job
            job = after(job, plan(job, gang(job, drained, attempt=attempt), NOW))
        assert job.status.restarts == suspensions + disruptions
        begins = next_attempt(job, NOW) or NOW
        assert least * SECOND <= begins - NOW <= least * 1.1 * SECOND


class TestReplicaScope:
    def test_the_scope_is_the_gang_where_there_is_one(self) -> None:
        assert restart_scope(make_mxjob().gang().obj()) == "Job"
        assert restart_scope(make_mxjob().worker(2).obj()) == "Job"
        assert restart_scope(make_mxjob().worker(1).obj()) == "Replica"
        assert restart_scope(make_mxjob().replicas("Tuner", 1).replicas("TunerTracker", 1).obj()) == "Replica"
        assert restart_scope(make_mxjob().gang().run_policy(restartScope="Replica").obj()) == "Replica"

    def test_only_the_failed_replica_goes_and_comes_again(self) -> None:
        builder = make_mxjob().replicas("TunerServer", 2).replicas("Tuner", 1).restart("OnFailure")
        job = builder.condition("Created").condition("Running").obj()
        services = tuple(service for service in make_services(job) if service.name == "digits-mx")
        well = (make_pod(job, "TunerServer", 1).running().obj(), make_pod(job, "Tuner").running().obj())
        failed = make_pod(job, "TunerServer").failed(1).obj()
        observed = Observed((failed, *well), services)
        job = after(job, plan(job, observed, NOW))
        assert job.status.restarting_pods == (failed.uid,)
        later = NOW + 60 * SECOND
        assert [action.name for action in plan(job, observed, later).actions if isinstance(action, DeletePod)] == [
            failed.name
        ]
        assert plan(job, Observed(well, services), later).actions == (CreatePod("TunerServer", 0, 1),)
