"""What the end of a pod means: its program's doing, or that of whoever took it away; the tables of semantics.md."""

from datetime import timedelta
from typing import Any

import pytest
from builders import NOW, JobBuilder, PodBuilder, make_mxjob, make_pod, observe

from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.plan import plan

SECOND = timedelta(seconds=1)
TAKEN = {"deleting": True, "taken_at": NOW}


def job_of(policy: str) -> JobBuilder:
    builder = make_mxjob().scheduler().worker(1).restart(policy)
    return builder.condition("Created").condition("Running")


def status_with(job: MXJob, worker: PodBuilder) -> MXJobStatus:
    scheduler = make_pod(job, "Scheduler").running().set(scheduled_at=NOW - 60 * SECOND)
    answer = plan(job, observe(job, scheduler, worker), NOW + 10 * SECOND)
    return job.status if answer.status is None else answer.status


ENDS = {
    "deleted by hand while it runs": ({"phase": "Running", **TAKEN}, 0),
    "deleted by hand, ended by the signal": ({"phase": "Running", "exit_code": 143, "finished_at": NOW, **TAKEN}, 0),
    "deleted by hand, ended as its handler wanted": (
        {"phase": "Failed", "exit_code": 1, "finished_at": NOW + SECOND, **TAKEN},
        0,
    ),
    "deleted by hand, ended well": ({"phase": "Succeeded", "exit_code": 0, "finished_at": NOW + SECOND, **TAKEN}, 0),
    "its node stopped talking, and the taint manager deleted it": (
        {"phase": "Running", "disruption": "DeletionByTaintManager", **TAKEN},
        0,
    ),
    "its phase is unknown, and the taint manager deleted it": (
        {"phase": "Unknown", "disruption": "DeletionByTaintManager", **TAKEN},
        0,
    ),
    "its node is gone, and it was collected": (
        {"phase": "Failed", "disruption": "DeletionByPodGC", "pod_message": "PodGC: node no longer exists", **TAKEN},
        0,
    ),
    "evicted by the API": ({"phase": "Running", "disruption": "EvictionByEvictionAPI", **TAKEN}, 0),
    "evicted by the API, ended well on SIGTERM": (
        {"phase": "Succeeded", "exit_code": 0, "disruption": "EvictionByEvictionAPI", "taken_at": NOW},
        0,
    ),
    "preempted by the scheduler": (
        {
            "phase": "Failed",
            "exit_code": 1,
            "finished_at": NOW + SECOND,
            "disruption": "PreemptionByScheduler",
            "taken_at": NOW,
        },
        0,
    ),
    "put out by a kubelet short of memory": (
        {"phase": "Failed", "pod_reason": "Evicted", "disruption": "TerminationByKubelet", "taken_at": NOW},
        1,
    ),
    "put out by a kubelet, with the exit code of its handler": (
        {
            "phase": "Failed",
            "exit_code": 1,
            "finished_at": NOW + SECOND,
            "pod_reason": "Evicted",
            "disruption": "TerminationByKubelet",
            "taken_at": NOW,
        },
        1,
    ),
    "put out for its own limits": ({"phase": "Failed", "pod_reason": "Evicted", "exit_code": 1}, 1),
    "put out for its own limits, ended well": ({"phase": "Failed", "pod_reason": "Evicted", "exit_code": 0}, 1),
    "lost with its node, as old Kubernetes says it": ({"phase": "Failed", "pod_reason": "NodeLost"}, 1),
    "refused by the kubelet for its devices": ({"phase": "Failed", "pod_reason": "UnexpectedAdmissionError"}, 1),
    "refused by the kubelet for its CPUs": ({"phase": "Failed", "pod_reason": "OutOfcpu"}, 1),
    "refused by the kubelet for its labels": ({"phase": "Failed", "pod_reason": "NodeAffinity"}, 1),
}
"""Ends that are not the program's own: the pod's fields, and how many failures they count as."""


@pytest.mark.parametrize("policy", ["ExitCode", "OnFailure"])
@pytest.mark.parametrize(("fields", "counted"), ENDS.values(), ids=list(ENDS))
def test_an_end_from_outside_is_tried_again_whatever_the_exit_code(
    policy: str, fields: dict[str, Any], counted: int
) -> None:
    job = job_of(policy).obj()
    status = status_with(job, make_pod(job, "Worker").set(**fields))
    assert (status.state, status.restarts_count_towards_max) == ("Restarting", counted)


@pytest.mark.parametrize("fields", [fields for fields, _ in ENDS.values()], ids=list(ENDS))
def test_under_never_an_end_from_outside_is_final(fields: dict[str, Any]) -> None:
    job = job_of("Never").obj()
    assert status_with(job, make_pod(job, "Worker").set(**fields)).state == "Failed"


@pytest.mark.parametrize("fields", [TAKEN, {"disruption": "EvictionByEvictionAPI", "taken_at": NOW}])
def test_a_program_that_failed_before_its_pod_was_taken_away_failed_by_itself(fields: dict[str, Any]) -> None:
    job = job_of("ExitCode").obj()
    worker = make_pod(job, "Worker").failed(1, at=NOW - 5 * SECOND).set(**fields)
    assert status_with(job, worker).state == "Failed"


@pytest.mark.parametrize("fields", [TAKEN, {"disruption": "EvictionByEvictionAPI", "taken_at": NOW}])
def test_an_exit_0_is_not_believed_then_since_clocks_of_nodes_differ(fields: dict[str, Any]) -> None:
    job = job_of("ExitCode").obj()
    worker = make_pod(job, "Worker").succeeded(at=NOW - 5 * SECOND).set(**fields)
    status = status_with(job, worker)
    assert (status.state, status.completed_indexes) == ("Restarting", {})


def test_a_disruption_that_has_not_come_about_yet_leaves_the_job_alone() -> None:
    job = job_of("ExitCode").obj()
    worker = make_pod(job, "Worker").running().set(disruption="EvictionByEvictionAPI", taken_at=NOW)
    assert status_with(job, worker) == job.status


@pytest.mark.parametrize("policy", ["ExitCode", "Never"])
def test_a_pod_whose_node_has_stopped_talking_runs_until_it_is_taken_away(policy: str) -> None:
    job = job_of(policy).run_policy(progressDeadlineSeconds=1).obj()
    worker = make_pod(job, "Worker").running().set(phase="Unknown", scheduled_at=NOW - 60 * SECOND)
    assert status_with(job, worker) == job.status


@pytest.mark.parametrize(("state", "reason"), [("Failed", "OOMKilled"), ("Restarting", "Error")])
def test_out_of_memory_is_final_where_the_same_exit_code_is_not(state: str, reason: str) -> None:
    job = job_of("ExitCode").obj()
    assert status_with(job, make_pod(job, "Worker").failed(137).set(reason=reason)).state == state


def test_exit_0_of_every_replica_is_no_success_if_one_was_being_deleted() -> None:
    job = job_of("Never").obj()
    scheduler, worker = make_pod(job, "Scheduler").succeeded(), make_pod(job, "Worker").succeeded()
    assert plan(job, observe(job, scheduler, worker), NOW).status.state == "Succeeded"  # type: ignore[union-attr]
    assert plan(job, observe(job, scheduler, worker.deleting()), NOW).status.state == "Failed"  # type: ignore[union-attr]


class TestTheMessage:
    def of(self, policy: str = "Never", **fields: Any) -> str:
        job = job_of(policy).obj()
        return status_with(job, make_pod(job, "Worker").set(**fields)).conditions[-1].message

    def test_says_who_took_the_pod_and_that_its_exit_code_is_not_the_reason(self) -> None:
        message = self.of(phase="Failed", exit_code=143, disruption="EvictionByEvictionAPI", **TAKEN)
        assert "worker-0 was taken from its node (EvictionByEvictionAPI) while the job ran" in message
        assert "it ended with exit code 143" in message

    def test_says_why_the_kubelet_put_the_pod_out(self) -> None:
        message = self.of(phase="Failed", exit_code=137, pod_reason="Evicted", pod_message="low on resource: memory")
        assert "worker-0 exited with code 137 (Evicted: low on resource: memory)" in message

    def test_says_why_the_kubelet_refused_the_pod(self) -> None:
        message = self.of(phase="Failed", pod_reason="OutOfcpu", pod_message="Node didn't have enough resource: cpu")
        assert "worker-0 failed: OutOfcpu: Node didn't have enough resource: cpu" in message

    def test_names_the_init_container_that_failed_and_its_last_lines(self) -> None:
        message = self.of(phase="Failed", exit_code=3, init_container="fetch", message="no such bucket\n")
        assert "worker-0's init container fetch exited with code 3:\nno such bucket" in message

    def test_says_what_to_do_where_the_image_has_no_shell_for_the_hook(self) -> None:
        runtime = 'failed to start: exec: "sh": executable file not found in $PATH: unknown'
        message = self.of(phase="Failed", exit_code=128, reason="StartError", message=runtime)
        assert runtime in message
        assert "runPolicy.failFast: false" in message


@pytest.mark.parametrize(("code", "state"), [(1, "Failed"), (137, "Restarting")])
def test_the_exit_code_of_an_init_container_decides_as_the_programs_would(code: int, state: str) -> None:
    job = job_of("ExitCode").obj()
    worker = make_pod(job, "Worker").set(phase="Failed", exit_code=code, init_container="fetch", finished_at=NOW)
    assert status_with(job, worker).state == state


@pytest.mark.parametrize("phase", ["Running", "Failed", "Pending"])
def test_the_mxnet_container_decides_whatever_becomes_of_its_neighbours(phase: str) -> None:
    """Another container still runs, has failed, or never started: that is what the pod's phase tells of."""
    job = job_of("Never").obj()
    ended = {"phase": phase, "exit_code": 0, "reason": "Completed", "finished_at": NOW}
    pods = (make_pod(job, "Scheduler").set(**ended), make_pod(job, "Worker").set(**ended))
    assert plan(job, observe(job, *pods), NOW).status.state == "Succeeded"  # type: ignore[union-attr]
