"""What the end of a pod means: its program's doing, or whoever took it away; the tables of docs/semantics.md."""

import itertools
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from builders import NOW, JobBuilder, PodBuilder, make_mxjob, make_pod, make_services, observe, plan

from mxnet_operator.api.types import MXJob, MXJobStatus
from mxnet_operator.builders.metadata import owner_reference, replica_labels
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.plan import Observed

SECOND = timedelta(seconds=1)
TAKEN = {"deleting": True, "removal_requested_at": NOW}


def job_of(policy: str) -> JobBuilder:
    builder = make_mxjob().scheduler().worker(1).restart(policy)
    return builder.condition("Created").condition("Running")


def status_with(job: MXJob, worker: PodBuilder) -> MXJobStatus:
    scheduler = make_pod(job, "Scheduler").running().set(scheduled_at=NOW - 60 * SECOND)
    answer = plan(job, observe(job, scheduler, worker), NOW + 10 * SECOND)
    return job.status if answer.status is None else answer.status


def written(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


ENDS: dict[str, tuple[dict[str, Any], int]] = {
    "deleted by hand while it runs": ({"phase": "Running", **TAKEN}, 0),
    "deleted by hand, ended by the signal": ({"phase": "Running", "exit_code": 143, "finished_at": NOW, **TAKEN}, 0),
    "its phase is unknown, and the taint manager deleted it": (
        {"phase": "Unknown", "disruption": "DeletionByTaintManager", **TAKEN},
        0,
    ),
    "put out by a kubelet, with the exit code of its handler": (
        {"phase": "Failed", "exit_code": 1, "pod_reason": "Evicted", "disruption": "TerminationByKubelet"},
        1,
    ),
    "put out by a kubelet, and its container is gone": (
        {"phase": "Failed", "exit_code": 137, "reason": "ContainerStatusUnknown", "pod_reason": "Evicted"}
        | {"disruption": "TerminationByKubelet"},
        1,
    ),
    "its node shut down, and its handler ended badly": (
        {"phase": "Failed", "exit_code": 1, "pod_reason": "Terminated", "disruption": "TerminationByKubelet"},
        0,
    ),
    "ran when its node rebooted": ({"phase": "Failed", "exit_code": 255, "reason": "Unknown", "finished_at": NOW}, 0),
    "ran when its node rebooted, and its container is gone": (
        {"phase": "Failed", "exit_code": 137, "reason": "ContainerStatusUnknown"},
        0,
    ),
    "put out for its own limits": ({"phase": "Failed", "pod_reason": "Evicted", "exit_code": 1}, 1),
    "put out for its own limits, ended well": ({"phase": "Failed", "pod_reason": "Evicted", "exit_code": 0}, 1),
    "lost with its node, as old Kubernetes says it": ({"phase": "Failed", "pod_reason": "NodeLost"}, 1),
}
"""Ends that are not the program's own: the pod's fields, and how many failures they count as."""


@pytest.mark.parametrize("policy", ["ExitCode", "OnFailure"])
def test_an_end_from_outside_is_tried_again_whatever_the_exit_code(policy: str) -> None:
    job = job_of(policy).obj()
    for end, (fields, counted) in ENDS.items():
        status = status_with(job, make_pod(job, "Worker").set(**fields))
        assert (status.state, status.restarts_count_towards_max) == ("Restarting", counted), end


@pytest.mark.parametrize("code", [0, 1, 130])
@pytest.mark.parametrize("fields", [TAKEN, {"disruption": "EvictionByEvictionAPI", "removal_requested_at": NOW}])
def test_an_exit_of_a_removed_pod_says_nothing_whatever_the_clocks_say(fields: dict[str, Any], code: int) -> None:
    """Seed 51005767: the API server's clock was ahead of the node's, and the exit of a deleted pod seemed earlier."""
    job = job_of("ExitCode").obj()
    worker = make_pod(job, "Worker").failed(code, at=NOW - 5 * SECOND).set(**fields)
    status = status_with(job, worker)
    assert (status.state, status.restarts_count_towards_max, status.completed_indexes) == ("Restarting", 0, {})


def test_a_disruption_that_has_not_come_about_yet_leaves_the_job_alone() -> None:
    job = job_of("ExitCode").obj()
    worker = make_pod(job, "Worker").running().set(disruption="EvictionByEvictionAPI", removal_requested_at=NOW)
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


@pytest.mark.parametrize(
    ("reasons", "resources", "said"),
    [
        (["OOMKilled"], {"limits": {"memory": "128Mi"}}, "(OOMKilled: its memory limit is 128Mi)"),
        (["OOMKilled"], {"limits": {"cpu": 1}}, "(OOMKilled)"),
        (["OOMKilled"], {"limits": None}, "(OOMKilled)"),
        (["OOMKilled"], None, "(OOMKilled)"),
        (["", "Error"], {"limits": {"memory": "2Gi"}}, "(killed: out of memory? its memory limit is 2Gi)"),
        (["", "Error"], None, "(killed: out of memory?)"),
    ],
)
def test_who_was_killed_has_or_may_have_run_out_of_memory_and_says_its_limit(
    reasons: list[str], resources: Any, said: str
) -> None:
    job = make_mxjob().scheduler().worker(1, resources=resources).condition("Running").obj()
    for reason in reasons:
        status = status_with(job, make_pod(job, "Worker").failed(137).set(reason=reason))
        assert f"worker-0 exited with code 137 {said}; it wrote nothing." in status.conditions[-1].message


def test_an_init_container_says_its_own_limit() -> None:
    fetch = {"name": "fetch", "image": "a", "resources": {"limits": {"memory": "1Gi"}}}
    job = make_mxjob().scheduler().worker(1, resources={"limits": {"memory": "2Gi"}}).condition("Running")
    job = job.template("Worker", initContainers=[fetch])
    worker = make_pod(job.obj(), "Worker").failed(137).set(reason="OOMKilled", init_container="fetch")
    message = status_with(job.obj(), worker).conditions[-1].message
    assert "worker-0's init container fetch exited with code 137 (OOMKilled: its memory limit is 1Gi)" in message


def test_exit_0_of_every_replica_is_no_success_if_one_was_being_deleted() -> None:
    job = job_of("Never").obj()
    scheduler, worker = make_pod(job, "Scheduler").succeeded(), make_pod(job, "Worker").succeeded()
    assert plan(job, observe(job, scheduler, worker), NOW).status.state == "Succeeded"
    assert plan(job, observe(job, scheduler, worker.deleting()), NOW).status.state == "Failed"


DISRUPTIONS = ("PreemptionByScheduler", "DeletionByTaintManager", "EvictionByEvictionAPI", "DeletionByPodGC")
BY_THE_NODE = ("Terminated", "Preempting", "Shutdown", "NodeShutdown")


def test_whether_an_end_counts_for_each_condition_and_each_reason_of_the_pod() -> None:
    """From the JSON that the kubelet and its mates write, through the projection, to the count."""
    reasons = ("", *DISRUPTIONS, "TerminationByKubelet")
    pod_reasons = ("", "Evicted", *BY_THE_NODE, "OutOfcpu")
    for reason, pod_reason, deleted in itertools.product(reasons, pod_reasons, (False, True)):
        is_disruption = reason in DISRUPTIONS or pod_reason in BY_THE_NODE or deleted
        status = status_after(reason, pod_reason, deleted)
        counted = (status.state, status.restarts_count_towards_max)
        assert counted == ("Restarting", 0 if is_disruption else 1), (reason, pod_reason, deleted)


def status_after(reason: str, pod_reason: str, deleted: bool) -> MXJobStatus:
    """The status of a gang after a pod failed with this DisruptionTarget condition and this reason."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": written(NOW)}
    metadata: dict[str, Any] = {}
    if deleted:
        metadata = {"deletionTimestamp": written(NOW + 38 * SECOND), "deletionGracePeriodSeconds": 30}
    job = job_of("ExitCode").obj()
    pod = {
        "metadata": {
            "name": "digits-worker-0",
            "namespace": "default",
            "uid": "w",
            "labels": replica_labels(job, "Worker", 0),
            "ownerReferences": [owner_reference(job)],
            **metadata,
        },
        "status": {"phase": "Failed", "reason": pod_reason, "conditions": [condition] if reason else []},
    }
    child = project_pod(msgspec.Raw(msgspec.json.encode(pod)))
    scheduler = make_pod(job, "Scheduler").running().obj()
    answer = plan(job, Observed((scheduler, child.view), make_services(job)), NOW + 40 * SECOND)
    assert answer.status is not None
    return answer.status


class TestTheFirstFailureOfAGangDecides:
    def status(self, first: PodBuilder, then: PodBuilder) -> MXJobStatus:
        scheduler = make_pod(self.job, "Scheduler").running()
        answer = plan(self.job, observe(self.job, scheduler, first, then), NOW + 10 * SECOND)
        assert answer.status is not None
        return answer.status

    job = make_mxjob().scheduler().worker(2).restart("ExitCode").condition("Created").condition("Running").obj()

    @pytest.mark.parametrize("code", [1, 139, 137])
    def test_what_follows_from_a_disruption_is_neither_final_nor_counted(self, code: int) -> None:
        taken = make_pod(self.job, "Worker").running().set(disruption="PreemptionByScheduler", **TAKEN)
        status = self.status(taken, make_pod(self.job, "Worker", 1).failed(code, at=NOW + SECOND))
        assert (status.state, status.restarts_count_towards_max) == ("Restarting", 0)

    def test_what_follows_from_a_retryable_exit_is_not_final(self) -> None:
        killed = make_pod(self.job, "Worker").failed(137, at=NOW)
        status = self.status(killed, make_pod(self.job, "Worker", 1).failed(1, at=NOW + SECOND))
        assert (status.state, status.restarts_count_towards_max) == ("Restarting", 1)

    @pytest.mark.parametrize("seconds", [0, 1])
    def test_a_permanent_failure_that_is_first_or_as_early_is_final(self, seconds: int) -> None:
        taken = (
            make_pod(self.job, "Worker")
            .running()
            .set(deleting=True, disruption="PreemptionByScheduler", removal_requested_at=NOW + seconds * SECOND)
        )
        assert self.status(taken, make_pod(self.job, "Worker", 1).failed(1, at=NOW)).state == "Failed"


class TestTheMessage:
    def of(self, policy: str = "Never", **fields: Any) -> str:
        job = job_of(policy).obj()
        return status_with(job, make_pod(job, "Worker").set(**fields)).conditions[-1].message

    def test_says_who_took_the_pod_and_that_its_exit_code_is_not_the_reason(self) -> None:
        fields = {"phase": "Failed", "exit_code": 143, "disruption": "EvictionByEvictionAPI", **TAKEN}
        message = self.of(**fields)
        assert "worker-0 was disrupted (EvictionByEvictionAPI) while the job ran" in message
        assert message.endswith("it ended with exit code 143.")
        assert self.of(**fields, message="a\nb\n").endswith("it ended with exit code 143:\na\nb")

    def test_says_that_a_node_shut_down(self) -> None:
        text = "Pod was terminated in response to imminent node shutdown."
        message = self.of(phase="Failed", exit_code=143, pod_reason="Terminated", pod_message=text)
        assert f"worker-0 was stopped by its node while the job ran: Terminated: {text}" in message

    def test_says_that_a_node_did_not_see_the_end(self) -> None:
        message = self.of(phase="Failed", exit_code=255, reason="Unknown", finished_at=NOW)
        assert "worker-0 was lost with its node, which did not see its end (Unknown), while the job ran." in message

    def test_says_why_a_pod_was_refused_of_which_a_kubelet_made_an_end_up_when_it_was_started_again(self) -> None:
        text = "Pod was rejected as the node is shutting down."
        made_up: dict[str, Any] = {"exit_code": 137, "reason": "ContainerStatusUnknown"}
        message = self.of(phase="Failed", pod_reason="NodeShutdown", pod_message=text, **made_up)
        assert f"worker-0 was stopped by its node while the job ran: NodeShutdown: {text}" in message
        assert "137" not in message

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


@pytest.mark.parametrize("phase", ["Running", "Failed", "Pending"])
def test_the_mxnet_container_decides_whatever_becomes_of_its_neighbours(phase: str) -> None:
    """Another container still runs, has failed, or never started: that is what the pod's phase tells of."""
    job = job_of("Never").obj()
    ended = {"phase": phase, "exit_code": 0, "reason": "Completed", "finished_at": NOW}
    pods = (make_pod(job, "Scheduler").set(**ended), make_pod(job, "Worker").set(**ended))
    assert plan(job, observe(job, *pods), NOW).status.state == "Succeeded"
