"""What `plan` decides, as tables: who decides success, what fails a job, what is created, written, and cleaned up."""

from datetime import timedelta
from typing import Any

import pytest
from builders import NOW, JobBuilder, PodBuilder, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.plan import Effects, Observed, ServiceView, reject
from mxnet_operator.plan.actions import CreatePod, CreateService, DeletePod, DeleteService, StopPod
from mxnet_operator.plan.notices import unused_gpus

DECIDE = (("Scheduler", 0), ("Worker", 0), ("Worker", 1))


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

    def test_nothing_is_done_for_a_job_that_is_being_deleted(self) -> None:
        assert plan(make_mxjob().gang().deleted().obj(), Observed(), NOW) == Effects()


class TestRunning:
    def test_a_finished_replica_is_recorded_after_a_delay_if_no_condition_comes_first(self) -> None:
        job = running_gang().obj()
        observed = gang(job, worker_1=make_pod(job, "Worker", 1).succeeded(at=NOW))
        soon = plan(job, observed, NOW + timedelta(seconds=1))
        assert (soon.status, soon.requeue_after) == (None, timedelta(seconds=4))
        later = plan(job, observed, NOW + timedelta(seconds=5))
        assert later.status.completed_indexes == {"Worker": "1"}
        assert later.status.conditions == job.status.conditions


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

    def test_a_final_failure_goes_before_a_success_that_is_seen_with_it(self) -> None:
        job = running_gang().obj()
        done = {f"{kind.lower()}_{i}": make_pod(job, kind, i).succeeded() for kind, i in DECIDE}
        answer = plan(job, gang(job, **done, server_0=make_pod(job, "Server").failed(1)), NOW)
        assert state_after(answer) == "Failed"


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


def test_a_stored_job_that_is_not_valid_fails_with_every_mistake() -> None:
    job = make_mxjob().worker(1).obj()
    answer = reject("digits", job.status, ("spec.jobMode: Required value", "spec.x: no"), NOW)
    assert state_after(answer) == "Failed"
    assert "spec.jobMode: Required value; spec.x: no" in answer.status.conditions[-1].message


def test_an_invalid_job_whose_pods_run_says_so_once_and_leaves_them_alone() -> None:
    job = make_mxjob().worker(1).condition("Created").condition("Running").without_state().obj()
    mistakes = ("spec.runPolicy.cleanPodPolicy: Unsupported value",)
    answer = reject("digits", job.status, mistakes, NOW, has_running_pods=True)
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
    assert [c.status for c in ended.status.conditions if c.type == "ReconcileError"] == ["False"]


@pytest.mark.parametrize(
    ("policy", "pod", "left"),
    [
        ("Running", "running", True),  # what follows the end of the job deletes it
        ("None", "running", True),  # ... or stops it
        ("None", "succeeded", False),
        ("All", "succeeded", True),
        ("None", "deleting", True),
    ],
)
@pytest.mark.parametrize("over", [True, False], ids=["over", "by this plan"])
def test_pods_are_left_until_the_clean_up_has_had_its_way(policy: str, pod: str, left: bool, over: bool) -> None:
    builder = make_mxjob().scheduler().worker(2).run_policy(cleanPodPolicy=policy).condition("Running")
    job = (builder.condition("Failed") if over else builder).obj()
    failed = make_pod(job, "Worker").failed(1)
    other = make_pod(job, "Worker", 1)
    {"running": other.running, "succeeded": other.succeeded, "deleting": other.running}[pod]()
    if pod == "deleting":
        other.deleting()
    scheduler = make_pod(job, "Scheduler").succeeded()
    decided = plan(job, observe(job, scheduler, failed, other), NOW)
    assert decided.pods_left is left


ONE: dict[str, Any] = {"limits": {"nvidia.com/gpu": 1}}


def test_a_scheduler_and_a_server_that_ask_for_one_are_named_once_in_an_event() -> None:
    job = make_mxjob().scheduler(resources=ONE).server(2, resources=ONE).worker(2, resources=ONE).obj()
    events = [event for event in plan(job, Observed(), NOW).events if event.reason == "UnusedGPU"]
    assert [event.type for event in events] == ["Warning", "Warning"]
    assert [event.message.partition(":")[0] for event in events] == ["Scheduler", "Server"]
    assert events[1].message == (
        "Server: the template asks for nvidia.com/gpu, which a Server never uses; no other pod can use it meanwhile:"
        " remove it from this template"
    )


@pytest.mark.parametrize("replica_type", ["scheduler", "SERVER", "tunertracker"])
def test_a_type_may_be_spelled_in_any_case(replica_type: str) -> None:
    assert len(list(unused_gpus(make_mxjob().replicas(replica_type, 1, resources=ONE).obj()))) == 1


@pytest.mark.parametrize(
    ("resources", "named"),
    [
        ({"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}, "alpha.kubernetes.io/nvidia-gpu"),
        ({"requests": {"amd.com/gpu": "1"}}, "amd.com/gpu"),
        ({"limits": {"nvidia.com/mig-1g.5gb": 2, "nvidia.com/gpu": "0"}}, "nvidia.com/mig-1g.5gb"),
        ({"limits": {"nvidia.com/gpu": "0", "cpu": 1}}, ""),
        ({"limits": None}, ""),
        (None, ""),
    ],
)
def test_whatever_the_gpu_is_called(resources: dict[str, Any] | None, named: str) -> None:
    job = make_mxjob().scheduler(resources=resources).worker(2).obj()
    assert [named in event.message for event in unused_gpus(job)] == ([True] if named else [])


def test_what_trains_or_tunes_may_have_one() -> None:
    tuning = make_mxjob().replicas("TunerTracker", 1).replicas("TunerServer", 1, resources=ONE)
    assert list(unused_gpus(tuning.replicas("Tuner", 1, resources=ONE).obj())) == []
