"""What `plan` decides, as tables: who decides success, what fails a job, what is created, written, and cleaned up."""

from datetime import timedelta

import msgspec
import pytest
from builders import NOW, JobBuilder, PodBuilder, make_mxjob, make_pod, make_services, observe, plan

from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.plan import Effects, Observed, ServiceView, reject
from mxnet_operator.plan.actions import CreatePod, CreateService, DeletePod, DeleteService, StopPod


def gang(job: MXJob, **states: PodBuilder) -> Observed:
    """All five pods of a 1+2+2 job, running unless a state is given as `worker_1=...`."""
    pods = {
        f"{kind.lower()}_{index}": make_pod(job, kind, index).running()
        for kind, count in (("Scheduler", 1), ("Server", 2), ("Worker", 2))
        for index in range(count)
    }
    assert set(states) <= set(pods)
    return observe(job, *{**pods, **states}.values())


def running_gang() -> JobBuilder:
    return make_mxjob().gang().condition("Created").condition("Running")


def state_after(answer: Effects) -> str:
    assert answer.status is not None
    return answer.status.state


class TestTopology:
    def test_a_new_job_gets_its_services_before_its_pods_and_the_scheduler_last(self) -> None:
        answer = plan(make_mxjob().gang().obj(), Observed(), NOW)
        assert answer.actions == (
            CreateService("digits-scheduler-0", "root"),
            CreateService("digits-mx", "replicas"),
            CreatePod("Server", 0, 0),
            CreatePod("Server", 1, 0),
            CreatePod("Worker", 0, 0),
            CreatePod("Worker", 1, 0),
            CreatePod("Scheduler", 0, 0, is_last=True),
        )

    def test_a_new_job_is_created_and_has_a_start_time(self) -> None:
        answer = plan(make_mxjob().gang().obj(), Observed(), NOW)
        assert answer.status is not None
        assert answer.status.state == "Created"
        assert answer.status.start_time == NOW
        assert [(c.type, c.reason, c.message) for c in answer.status.conditions] == [
            ("Created", "MXJobCreated", "MXJob digits is created.")
        ]

    def test_only_what_is_missing_is_created(self) -> None:
        job = make_mxjob().gang().condition("Created").obj()
        observed = observe(job, make_pod(job, "Scheduler"), make_pod(job, "Server", 1), make_pod(job, "Worker", 0))
        assert plan(job, observed, NOW).actions == (CreatePod("Server", 0, 0), CreatePod("Worker", 1, 0))

    def test_a_job_without_a_scheduler_has_no_root_service(self) -> None:
        answer = plan(make_mxjob().worker(1).obj(), Observed(), NOW)
        assert answer.actions == (CreateService("digits-mx", "replicas"), CreatePod("Worker", 0, 0))

    def test_a_type_in_lower_case_is_the_same_type(self) -> None:
        answer = plan(make_mxjob().replicas("worker", None).obj(), Observed(), NOW)
        assert CreatePod("Worker", 0, 0) in answer.actions

    def test_nothing_is_done_for_a_job_that_is_being_deleted(self) -> None:
        assert plan(make_mxjob().gang().deleted().obj(), Observed(), NOW) == Effects()

    def test_a_job_in_order_asks_for_nothing(self) -> None:
        job = running_gang().obj()
        assert plan(job, gang(job), NOW) == Effects()


class TestRunning:
    def test_a_job_runs_once_every_replica_has_started(self) -> None:
        job = make_mxjob().gang().condition("Created").obj()
        assert plan(job, gang(job, worker_1=make_pod(job, "Worker", 1)), NOW).status is None
        answer = plan(job, gang(job), NOW)
        assert state_after(answer) == "Running"
        assert answer.status is not None
        assert {kind: count.active for kind, count in answer.status.replica_statuses.items()} == {
            "Scheduler": 1,
            "Server": 2,
            "Worker": 2,
        }

    def test_a_finished_replica_is_recorded_after_a_delay_if_no_condition_comes_first(self) -> None:
        job = running_gang().obj()
        observed = gang(job, worker_1=make_pod(job, "Worker", 1).succeeded(at=NOW))
        soon = plan(job, observed, NOW + timedelta(seconds=1))
        assert (soon.status, soon.requeue_after) == (None, timedelta(seconds=4))
        later = plan(job, observed, NOW + timedelta(seconds=5))
        assert later.status is not None
        assert later.status.completed_indexes == {"Worker": "1"}
        assert later.status.conditions == job.status.conditions

    def test_a_recorded_replica_never_runs_again_when_its_pod_is_collected(self) -> None:
        job = (
            make_mxjob()
            .gang(workers=1)
            .status(completedIndexes={"Server": "0-1"})
            .condition("Created")
            .condition("Running")
            .obj()
        )
        observed = observe(job, make_pod(job, "Scheduler").running(), make_pod(job, "Worker").running())
        assert plan(job, observed, NOW) == Effects()


class TestSuccess:
    @pytest.mark.parametrize(
        ("policy", "done", "succeeded"),
        [
            ("", {"scheduler_0"}, False),
            ("", {"worker_0", "worker_1"}, False),
            ("", {"scheduler_0", "worker_0", "worker_1"}, True),
            ("Scheduler", {"scheduler_0"}, True),
            ("AllWorkers", {"worker_0", "worker_1"}, True),
            ("AllWorkers", {"scheduler_0", "worker_0"}, False),
        ],
    )
    def test_the_policy_says_who_decides(self, policy: str, done: set[str], succeeded: bool) -> None:
        job = running_gang().success_policy(policy).obj()
        pods = {
            key: make_pod(job, kind.capitalize(), int(index)).succeeded()
            for key in done
            for kind, index in (key.split("_"),)
        }
        answer = plan(job, gang(job, **pods), NOW)
        assert (answer.status is not None and answer.status.state == "Succeeded") is succeeded

    def test_a_lone_worker_decides_for_itself(self) -> None:
        job = make_mxjob().worker(1).condition("Created").condition("Running").obj()
        answer = plan(job, observe(job, make_pod(job, "Worker").succeeded()), NOW)
        assert state_after(answer) == "Succeeded"
        assert answer.status is not None
        assert answer.status.completion_time == NOW
        assert [event.reason for event in answer.events] == ["MXJobSucceeded"]

    def test_the_tuner_ends_a_tuning_job(self) -> None:
        builder = make_mxjob().replicas("TunerTracker", 1).replicas("TunerServer", 1).replicas("Tuner", 1)
        job = builder.condition("Created").condition("Running").obj()
        tracker, server = (make_pod(job, kind).running() for kind in ("TunerTracker", "TunerServer"))
        assert plan(job, observe(job, tracker, server, make_pod(job, "Tuner").running()), NOW).status is None
        answer = plan(job, observe(job, tracker, server, make_pod(job, "Tuner").succeeded()), NOW)
        assert state_after(answer) == "Succeeded"

    def test_exit_0_of_a_pod_that_is_being_deleted_is_not_success(self) -> None:
        job = make_mxjob().worker(1).condition("Created").condition("Running").obj()
        answer = plan(job, observe(job, make_pod(job, "Worker").succeeded().deleting()), NOW)
        assert state_after(answer) == "Failed"

    def test_a_sidecar_that_runs_on_does_not_hold_the_job(self) -> None:
        job = make_mxjob().worker(1).condition("Created").condition("Running").obj()
        pod = make_pod(job, "Worker").running().set(exit_code=0, finished_at=NOW)
        assert state_after(plan(job, observe(job, pod), NOW)) == "Succeeded"

    def test_the_end_of_a_job_makes_running_false_and_comes_without_actions(self) -> None:
        job = make_mxjob().worker(1).condition("Created").condition("Running").obj()
        answer = plan(job, observe(job, make_pod(job, "Worker").succeeded()), NOW)
        assert answer.status is not None
        assert [(c.type, c.status) for c in answer.status.conditions] == [
            ("Created", "True"),
            ("Running", "False"),
            ("Succeeded", "True"),
        ]
        assert answer.actions == ()


class TestFailure:
    @pytest.mark.parametrize("kind", ["Scheduler", "Server", "Worker"])
    def test_one_failed_replica_of_any_type_fails_the_job(self, kind: str) -> None:
        job = running_gang().obj()
        answer = plan(job, gang(job, **{f"{kind.lower()}_0": make_pod(job, kind).failed(1)}), NOW)
        assert state_after(answer) == "Failed"

    def test_a_failed_worker_outweighs_a_scheduler_that_succeeded(self) -> None:
        job = make_mxjob().scheduler().worker(1).condition("Created").condition("Running").obj()
        observed = observe(job, make_pod(job, "Scheduler").succeeded(), make_pod(job, "Worker").failed(1))
        assert state_after(plan(job, observed, NOW)) == "Failed"

    def test_the_message_has_the_replica_its_exit_code_and_its_last_lines(self) -> None:
        job = running_gang().obj()
        failed = make_pod(job, "Worker", 1).failed(3, "Traceback:\n  boom\nValueError: no such digit\n")
        answer = plan(job, gang(job, worker_1=failed), NOW)
        assert answer.status is not None
        assert answer.status.conditions[-1].message == (
            "mxjob digits is failed because 1 Worker replica(s) failed. worker-1 exited with code 3:\n"
            "Traceback:\n  boom\nValueError: no such digit"
        )
        assert [(event.type, event.reason) for event in answer.events] == [("Warning", "MXJobFailed")]

    def test_the_message_tells_of_the_replica_that_failed_first(self) -> None:
        job = running_gang().obj()
        observed = gang(
            job,
            server_0=make_pod(job, "Server").failed(134, at=NOW + timedelta(seconds=2)),
            worker_0=make_pod(job, "Worker").failed(137, at=NOW),
        )
        answer = plan(job, observed, NOW)
        assert answer.status is not None
        assert "worker-0 exited with code 137" in answer.status.conditions[-1].message

    def test_a_pod_that_was_evicted_says_so(self) -> None:
        job = running_gang().obj()
        evicted = make_pod(job, "Worker").set(phase="Failed", pod_reason="Evicted", pod_message="The node was low")
        answer = plan(job, gang(job, worker_0=evicted), NOW)
        assert answer.status is not None
        assert "worker-0 failed: Evicted: The node was low" in answer.status.conditions[-1].message

    def test_a_pod_that_vanished_while_the_job_ran_fails_the_job(self) -> None:
        job = running_gang().obj()
        pods = tuple(pod for pod in gang(job).pods if pod.name != "digits-server-1")
        answer = plan(job, Observed(pods, make_services(job)), NOW)
        assert answer.status is not None
        assert "server-1 is gone" in answer.status.conditions[-1].message

    def test_a_pod_that_exits_0_past_its_own_deadline_has_failed(self) -> None:
        job = running_gang().obj()
        stopped = make_pod(job, "Worker").succeeded().set(phase="Failed", pod_reason="DeadlineExceeded")
        assert state_after(plan(job, gang(job, worker_0=stopped), NOW)) == "Failed"


class TestTerminal:
    def test_what_still_runs_is_stopped_in_place_where_pods_are_kept(self) -> None:
        job = running_gang().condition("Failed").obj()
        observed = gang(
            job,
            worker_0=make_pod(job, "Worker").failed(1),
            worker_1=make_pod(job, "Worker", 1).unscheduled(),
            server_0=make_pod(job, "Server").running().set(stop_requested=True),
        )
        assert plan(job, observed, NOW).actions == (
            StopPod("digits-scheduler-0", "uid-of-digits-scheduler-0"),
            StopPod("digits-server-1", "uid-of-digits-server-1"),
            DeletePod("digits-worker-1", "uid-of-digits-worker-1"),
        )

    def test_a_running_pod_with_a_late_word_of_its_scheduler_is_stopped_in_place(self) -> None:
        job = make_mxjob().worker(2).condition("Failed").obj()
        late = make_pod(job, "Worker", 1).running().set(unschedulable="0/1 nodes are available")
        pods = (make_pod(job, "Worker", 0).failed(1).obj(), late.obj())
        assert plan(job, Observed(pods), NOW).actions == (StopPod("digits-worker-1", "uid-of-digits-worker-1"),)

    def test_policy_running_deletes_what_has_not_ended_and_the_services(self) -> None:
        job = make_mxjob().worker(2).run_policy(cleanPodPolicy="Running").condition("Succeeded").obj()
        pods = (make_pod(job, "Worker", 0).succeeded().obj(), make_pod(job, "Worker", 1).running().obj())
        service = ServiceView(name="digits-mx", uid="s", owner_uid=job.metadata.uid)
        assert plan(job, Observed(pods, (service,)), NOW).actions == (
            DeletePod("digits-worker-1", "uid-of-digits-worker-1"),
            DeleteService("digits-mx", "s"),
        )

    def test_policy_all_deletes_every_pod_once(self) -> None:
        job = make_mxjob().worker(2).run_policy(cleanPodPolicy="All").condition("Succeeded").obj()
        pods = (make_pod(job, "Worker", 0).succeeded().obj(), make_pod(job, "Worker", 1).succeeded().deleting().obj())
        assert plan(job, Observed(pods), NOW).actions == (DeletePod("digits-worker-0", "uid-of-digits-worker-0"),)

    @pytest.mark.parametrize("end", ["Succeeded", "Failed"])
    def test_nothing_is_created_and_no_condition_changes_any_more(self, end: str) -> None:
        job = running_gang().condition(end).obj()
        assert plan(job, Observed(), NOW) == Effects()
        observed = gang(job, worker_0=make_pod(job, "Worker").failed(1))
        assert plan(job, observed, NOW).status is None


class TestNotices:
    def test_a_field_that_this_version_does_not_act_on_is_told_once(self) -> None:
        builder = make_mxjob().worker(1).run_policy(schedulingPolicy={"queue": "a"})
        gangs = (GangPolicy(),)
        (event,) = plan(builder.obj(), Observed(), NOW, integrations=gangs).events
        assert event.type == "Warning"
        assert "spec.runPolicy.schedulingPolicy" in event.message
        assert plan(builder.condition("Created").obj(), Observed(), NOW, integrations=gangs).events == ()

    def test_a_template_that_names_its_host_is_told_that_it_loses(self) -> None:
        answer = plan(make_mxjob().worker(1).template("Worker", hostname="mine").obj(), Observed(), NOW)
        assert [event.reason for event in answer.events] == ["SetPodTemplateHostname"]

    def test_the_old_name_of_the_gpu_resource_is_warned_about(self) -> None:
        resources = {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}
        answer = plan(make_mxjob().worker(1, resources=resources).obj(), Observed(), NOW)
        assert [(event.type, event.reason) for event in answer.events] == [("Warning", "OldGPUResource")]


class TestPlacement:
    WORDS = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."

    def placement(self, answer: Effects) -> list[tuple[str, str]]:
        assert answer.status is not None
        return [(c.status, c.message) for c in answer.status.conditions if c.type == "PodsScheduled"]

    def test_a_job_that_cannot_be_placed_says_which_pods_wait_and_why(self) -> None:
        job = make_mxjob().worker(2).condition("Created").obj()
        waiting = make_pod(job, "Worker", 1).unscheduled().set(unschedulable=self.WORDS)
        answer = plan(job, observe(job, make_pod(job, "Worker"), waiting), NOW)
        assert self.placement(answer) == [("False", f"1 of 2 placed: worker-1 can't be placed: {self.WORDS}")]
        assert state_after(answer) == "Created"

    def test_the_schedulers_changing_words_are_not_written_again(self) -> None:
        job = make_mxjob().worker(1).condition("Created").obj()
        waiting = make_pod(job, "Worker").unscheduled().set(unschedulable=self.WORDS)
        status = plan(job, observe(job, waiting), NOW).status
        assert status is not None
        job = msgspec.structs.replace(job, status=status)
        assert plan(job, observe(job, waiting.set(unschedulable="0/4 nodes are available")), NOW).status is None

    def test_it_is_taken_back_when_all_have_a_node(self) -> None:
        job = make_mxjob().worker(1).condition("Created").obj()
        waiting = make_pod(job, "Worker").unscheduled().set(unschedulable=self.WORDS)
        status = plan(job, observe(job, waiting), NOW).status
        assert status is not None
        job = msgspec.structs.replace(job, status=status)
        assert self.placement(plan(job, observe(job, make_pod(job, "Worker")), NOW)) == [
            ("True", "Every pod has a node.")
        ]


def test_a_stored_job_that_is_not_valid_fails_with_every_mistake() -> None:
    job = make_mxjob().worker(1).obj()
    answer = reject("digits", job.status, ("spec.jobMode: Required value", "spec.x: no"), NOW)
    assert state_after(answer) == "Failed"
    assert answer.status is not None
    assert "spec.jobMode: Required value; spec.x: no" in answer.status.conditions[-1].message


def test_an_invalid_job_whose_pods_run_says_so_once_and_leaves_them_alone() -> None:
    job = make_mxjob().worker(1).condition("Created").condition("Running").without_state().obj()
    mistakes = ("spec.runPolicy.cleanPodPolicy: Unsupported value",)
    answer = reject("digits", job.status, mistakes, NOW, has_running_pods=True)
    assert answer.status is not None
    assert (answer.actions, answer.status.state) == ((), "Running")
    newest = answer.status.conditions[-1]
    assert (newest.type, newest.status, newest.reason) == ("ReconcileError", "True", "MXJobFailedValidation")
    assert mistakes[0] in newest.message
    assert "pods are left alone" in newest.message
    (event,) = answer.events
    assert (event.type, event.reason, event.message) == ("Warning", "ReconcileError", newest.message)
    again = reject("digits", answer.status, mistakes, NOW, has_running_pods=True)
    assert (again.status, again.events, again.requeue_after) == (None, (), answer.requeue_after)
    assert again.requeue_after is not None
    ended = reject("digits", answer.status, mistakes, NOW)
    assert state_after(ended) == "Failed"
    assert ended.status is not None
    assert [c.status for c in ended.status.conditions if c.type == "ReconcileError"] == ["False"]


def test_the_same_look_gives_the_same_answer() -> None:
    job = make_mxjob().gang().obj()
    assert plan(job, Observed(), NOW) == plan(job, Observed(), NOW)
