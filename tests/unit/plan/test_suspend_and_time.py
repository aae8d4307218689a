"""Suspension, deadlines and time to live."""

from datetime import timedelta

import msgspec
import pytest
from builders import NOW, after, make_mxjob, make_pod, make_services, plan, with_policy

from mxnet_operator.api.types import MXJob, TrainingStatus
from mxnet_operator.plan import Effects, Observed
from mxnet_operator.plan.actions import CreatePod, DeleteJob, DeletePod, DeleteService, StopPod
from mxnet_operator.plan.failures import next_attempt

SECOND = timedelta(seconds=1)


class TestSuspend:
    def test_a_running_job_gives_up_its_pods_first_and_says_suspended_when_they_are_gone(self) -> None:
        job = with_policy(make_mxjob().worker(2).condition("Created").condition("Running").obj(), suspend=True)
        trained = msgspec.structs.replace(job.status, training=TrainingStatus(epoch=3))
        job = msgspec.structs.replace(job, status=trained)
        pods = tuple(make_pod(job, "Worker", index).running().obj() for index in (0, 1))
        services = make_services(job)[1:]
        raised = plan(job, Observed(pods, services), NOW)
        assert (raised.actions, raised.status.restarts, raised.status.state) == ((), 1, "Created")
        assert raised.status.training is None
        job = after(job, raised)
        deletes = plan(job, Observed(pods, services), NOW)
        assert deletes.status is None
        assert deletes.actions == (
            DeletePod("digits-worker-0", pods[0].uid),
            DeletePod("digits-worker-1", pods[1].uid),
            DeleteService("digits-mx", services[0].uid),
        )
        job = after(job, plan(job, Observed((), services), NOW))
        assert (job.status.state, job.status.start_time, job.status.replica_statuses) == ("Suspended", None, {})
        assert job.status.restarts_count_towards_max == 0

    def test_one_suspended_between_two_attempts_begins_to_count_disruptions_anew(self) -> None:
        job = make_mxjob().worker(2).restart("OnFailure").condition("Created").condition("Restarting").obj()
        job = msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, restarts=3, created_attempts=3))
        job = with_policy(job, suspend=True)
        job = after(job, plan(job, Observed(), NOW))
        assert (job.status.state, job.status.restarts, job.status.first_attempt) == ("Suspended", 3, 3)
        assert plan(job, Observed(), NOW + SECOND) == Effects()
        job = with_policy(job, suspend=False)
        job = after(job, plan(job, Observed(), NOW))
        lost = make_pod(job, "Worker", 0).deleting().set(attempt=3).obj()
        job = after(job, plan(job, Observed((lost, make_pod(job, "Worker", 1).running().set(attempt=3).obj())), NOW))
        assert (job.status.state, job.status.restarts) == ("Restarting", 4)
        assert next_attempt(job, NOW) is None

    def test_a_resumed_job_starts_all_again_at_once_and_anew(self) -> None:
        job = make_mxjob().worker(2).run_policy(suspend=True).condition("Created").obj()
        job = with_policy(after(job, plan(job, Observed(), NOW)), suspend=False)
        answer = plan(job, Observed(), NOW + 60 * SECOND)
        assert [action for action in answer.actions if isinstance(action, CreatePod)] == [
            CreatePod("Worker", 1, 0),
            CreatePod("Worker", 0, 0, is_last=True),
        ]
        status = after(job, answer).status
        assert (status.state, status.start_time) == ("Created", NOW + 60 * SECOND)
        assert [(c.type, c.status, c.reason) for c in status.conditions if c.type == "Suspended"] == [
            ("Suspended", "False", "MXJobResumed")
        ]

    @pytest.mark.parametrize("kind", ["gang", "tune"])
    def test_pods_that_a_change_of_mind_finds_half_gone_are_no_failure(self, kind: str) -> None:
        builder = make_mxjob()
        builder = builder.worker(2) if kind == "gang" else builder.replicas("Tuner", 1).replicas("TunerServer", 1)
        job = with_policy(builder.condition("Created").condition("Running").obj(), suspend=True)
        types = [("Worker", 0), ("Worker", 1)] if kind == "gang" else [("Tuner", 0), ("TunerServer", 0)]
        pods = tuple(make_pod(job, *replica).running().obj() for replica in types)
        job = with_policy(after(job, plan(job, Observed(pods), NOW)), suspend=False)
        half_gone = (msgspec.structs.replace(pods[0], deleting=True, exit_code=143, phase="Failed"),)
        answer = plan(job, Observed(half_gone), NOW)
        assert answer.status is None or answer.status.state == "Created"
        answer = plan(job, Observed(), NOW)
        assert {action.attempt for action in answer.actions if isinstance(action, CreatePod)} == {1}


class TestActiveDeadline:
    def test_the_job_fails_when_its_time_is_over_and_is_looked_at_then(self) -> None:
        builder = make_mxjob().worker(1).run_policy(activeDeadlineSeconds=3660)
        job = builder.condition("Created").condition("Running").obj()  # since 11:00
        observed = Observed((make_pod(job, "Worker").running().obj(),), make_services(job)[1:])
        early = plan(job, observed, NOW)
        assert (early.status, early.requeue_after) == (None, 60 * SECOND)
        late = after(job, plan(job, observed, NOW + 60 * SECOND)).status
        assert late.state == "Failed"
        assert "it was active longer than specified deadline" in late.conditions[-1].message
        assert late.completion_time == NOW + 60 * SECOND

    @pytest.mark.parametrize(
        ("servers", "pods", "said"),
        [
            (0, (), "no TunerServer was running, and a tuner waits for one without end (the job asks for none)"),
            (2, (), "no TunerServer was running, and a tuner waits for one without end (tunerserver-0: ErrImagePull)"),
            (2, ("TunerServer",), ""),
        ],
    )
    def test_a_tuner_that_had_no_server_is_said_to_have_waited_for_one(self, servers, pods, said) -> None:
        builder = make_mxjob().replicas("TunerTracker", 1).replicas("TunerServer", servers).replicas("Tuner", 1)
        job = builder.run_policy(activeDeadlineSeconds=60).condition("Created").obj()  # since 11:00
        running = [make_pod(job, kind).running().obj() for kind in ("TunerTracker", "Tuner", *pods)]
        waiting = [
            make_pod(job, "TunerServer", index).set(waiting_reason="ErrImagePull").obj()
            for index in range(len(pods), servers)
        ]
        status = after(job, plan(job, Observed((*running, *waiting)), NOW)).status
        message = status.conditions[-1].message
        assert message.partition("specified deadline (60 s)")[2].removeprefix(": ") == said

    def test_success_that_is_seen_late_is_success(self) -> None:
        job = make_mxjob().worker(1).run_policy(activeDeadlineSeconds=1).condition("Created").condition("Running").obj()
        status = after(job, plan(job, Observed((make_pod(job, "Worker").succeeded().obj(),)), NOW)).status
        assert status.state == "Succeeded"


class TestProgressDeadline:
    def test_pods_that_are_placed_and_do_not_start_fail_the_job_and_say_why(self) -> None:
        job = make_mxjob().worker(2).run_policy(progressDeadlineSeconds=30).condition("Created").obj()
        waiting = make_pod(job, "Worker").set(
            scheduled_at=NOW, waiting_reason="ErrImagePull", waiting_message="no such image"
        )
        other = make_pod(job, "Worker", 1).running().set(scheduled_at=NOW - SECOND)
        observed = Observed((waiting.obj(), other.obj()), make_services(job)[1:])
        assert plan(job, observed, NOW).requeue_after == 31 * SECOND
        status = after(job, plan(job, observed, NOW + 31 * SECOND)).status
        assert "worker-0 did not start (ErrImagePull: no such image)" in status.conditions[-1].message

    def test_of_several_the_one_whose_container_can_not_start_says_why(self) -> None:
        job = make_mxjob().worker(2).run_policy(progressDeadlineSeconds=30).condition("Created").obj()
        creating = make_pod(job, "Worker").set(scheduled_at=NOW, waiting_reason="ContainerCreating")
        pulling = make_pod(job, "Worker", 1).set(scheduled_at=NOW, waiting_reason="ImagePullBackOff")
        observed = Observed((creating.obj(), pulling.obj()), make_services(job)[1:])
        status = after(job, plan(job, observed, NOW + 31 * SECOND)).status
        assert "worker-0, worker-1 did not start (ImagePullBackOff)" in status.conditions[-1].message

    def test_waiting_to_be_placed_is_not_counted(self) -> None:
        job = make_mxjob().worker(1).run_policy(progressDeadlineSeconds=1).condition("Created").obj()
        observed = Observed((make_pod(job, "Worker").unscheduled().obj(),), make_services(job)[1:])
        assert plan(job, observed, NOW + 3600 * SECOND) == Effects()

    def test_a_pod_that_its_template_places_counts_from_its_creation(self) -> None:
        job = make_mxjob().worker(2).run_policy(progressDeadlineSeconds=5).condition("Created").obj()
        named = make_pod(job, "Worker").set(node_name="gpu-1", created_at=NOW).obj()
        bound = make_pod(job, "Worker", 1).running().set(scheduled_at=NOW - 60 * SECOND).obj()
        observed = Observed((named, bound), make_services(job)[1:])
        assert plan(job, observed, NOW + 5 * SECOND).requeue_after == SECOND
        failed = after(job, plan(job, observed, NOW + 6 * SECOND))
        assert failed.status.conditions[-1].message == (
            "mxjob digits is failed because it made no progress for 5 s: worker-0 did not start"
            " (node gpu-1 has not reported on it)"
        )

    def test_one_whose_node_does_not_exist_is_not_placed(self) -> None:
        policy = {"schedulingPolicy": {"scheduleTimeoutSeconds": 5}}
        job = make_mxjob().worker(1).run_policy(**policy).condition("Created").obj()
        words = "node gpu-1 not found; this cluster has: local"
        pod = make_pod(job, "Worker").set(node_name="gpu-1", created_at=NOW, unschedulable=words).obj()
        observed = Observed((pod,), make_services(job)[1:])
        waiting = after(job, plan(job, observed, NOW))
        assert waiting.status.conditions[-1].message == f"0 of 1 placed: worker-0 can't be placed: {words}"
        failed = after(job, plan(job, observed, NOW + 5 * SECOND))
        assert failed.status.state == "Failed"
        assert failed.status.conditions[-1].message.startswith("mxjob digits is failed because it could not be sched")
        (action,) = plan(failed, observed, NOW + 5 * SECOND).actions[:1]
        assert action == DeletePod("digits-worker-0", pod.uid)


class TestTimeToLive:
    def test_a_finished_job_is_deleted_when_its_time_has_come(self) -> None:
        builder = make_mxjob().worker(1).run_policy(ttlSecondsAfterFinished=3600)
        job = builder.status(completionTime="2026-11-21T11:30:00Z").condition("Succeeded").obj()
        assert plan(job, Observed(), NOW).requeue_after == 1800 * SECOND
        assert plan(job, Observed(), NOW + 1800 * SECOND).actions == (DeleteJob("digits", job.metadata.uid),)

    def test_a_job_that_the_old_operator_left_failed_counts_from_its_condition(self) -> None:
        job = make_mxjob().worker(1).run_policy(ttlSecondsAfterFinished=0).condition("Failed").obj()
        assert plan(job, Observed(), NOW).actions == (DeleteJob("digits", job.metadata.uid),)


class TestStop:
    def test_a_job_that_was_stopped_fails_at_once_whatever_it_waits_for_and_keeps_its_pods(self) -> None:
        running = make_mxjob().worker(2).condition("Created").condition("Running")
        pods = tuple(make_pod(running.obj(), "Worker", index).running().obj() for index in (0, 1))
        for builder, there in ((make_mxjob().worker(2), ()), (running, pods), (running.run_policy(suspend=True), pods)):
            answer = plan(with_stop(builder.obj()), Observed(there, make_services(builder.obj())), NOW)
            assert (answer.status.state, answer.actions) == ("Failed", ())
            assert answer.status.conditions[-1].message == "Job digits has failed because it was stopped"
            stopped = plan(after(with_stop(builder.obj()), answer), Observed(there, ()), NOW + SECOND)
            assert stopped.actions == tuple(StopPod(pod.name, pod.uid) for pod in there)

    def test_a_job_that_has_succeeded_meanwhile_is_not_stopped_and_another_value_stops_nothing(self) -> None:
        job = make_mxjob().worker(1).condition("Created").condition("Running").obj()
        done = Observed((make_pod(job, "Worker").succeeded().obj(),), make_services(job))
        running = Observed((make_pod(job, "Worker").running().obj(),), make_services(job))
        assert after(job, plan(with_stop(job), done, NOW)).status.state == "Succeeded"
        assert plan(with_stop(job, "false"), running, NOW) == plan(job, running, NOW)


def with_stop(job: MXJob, value: str = "true") -> MXJob:
    metadata = msgspec.structs.replace(job.metadata, annotations={"mxjob.kubeflow.org/stop": value})
    return msgspec.structs.replace(job, metadata=metadata)
