"""What is read of a pod that ends, goes or waits, as kubelets and controllers of real clusters write it."""

import json
from datetime import UTC, datetime

import msgspec
import pytest

from mxnet_operator.controller.projection import project_pod

LABELS = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "0"}
OWNER = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "digits", "uid": "job-uid", "controller": True}


def at(second):
    return datetime(2026, 11, 21, 12, 0, second, tzinfo=UTC)


def written(second):
    return at(second).strftime("%Y-%m-%dT%H:%M:%SZ")


def view(metadata=None, **status):
    whole = {"name": "p", "namespace": "ns", "uid": "u", "labels": LABELS, "ownerReferences": [OWNER]} | (
        metadata or {}
    )
    return project_pod(msgspec.Raw(json.dumps({"metadata": whole, "status": status}).encode())).view


def ended(name, code, second):
    state = {"terminated": {"exitCode": code, "reason": "Error", "message": name, "finishedAt": written(second)}}
    return {"name": name, "state": state}


def waiting(name, reason, message=""):
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


def test_a_deleted_pod_was_asked_to_go_its_grace_period_before_its_deletion_timestamp():
    going = view({"deletionTimestamp": written(40), "deletionGracePeriodSeconds": 30, "finalizers": ["a/b"]})
    assert (going.deleting, going.delete_by, going.removal_requested_at) == (True, at(40), at(10))
    assert (going.forced, going.finalizers) == (False, ("a/b",))


def test_a_pod_that_was_deleted_by_force_and_is_held_is_known():
    assert view({"deletionTimestamp": written(40), "deletionGracePeriodSeconds": 0}).forced
    assert not view().forced


def test_a_disrupted_pod_was_asked_to_go_when_its_condition_says():
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    pod = view(conditions=[condition | {"lastTransitionTime": written(5)}])
    assert (pod.disruption, pod.removal_requested_at, pod.deleting) == ("PreemptionByScheduler", at(5), False)


def test_the_end_of_a_pod_whose_init_container_failed_is_that_ones():
    pod = view(
        phase="Failed",
        initContainerStatuses=[ended("first", 0, 1), ended("fetch", 3, 2)],
        containerStatuses=[waiting("mxnet", "PodInitializing")],
    )
    assert (pod.init_container, pod.exit_code, pod.message, pod.finished_at) == ("fetch", 3, "fetch", at(2))


@pytest.mark.parametrize("second", [2, 3])
def test_a_sidecar_that_was_stopped_because_an_init_container_failed_is_not_to_blame(second):
    pod = view(
        phase="Failed",
        initContainerStatuses=[ended("proxy", 143, second), ended("fetch", 3, 2)],
        containerStatuses=[waiting("mxnet", "PodInitializing")],
    )
    assert pod.init_container == "fetch"


def test_an_init_container_that_failed_does_not_end_a_pod_that_goes_on_and_mxnet_has_the_last_word():
    pod = view(phase="Pending", initContainerStatuses=[ended("proxy", 1, 1)])
    assert (pod.init_container, pod.exit_code) == ("", None)
    pod = view(phase="Failed", initContainerStatuses=[ended("proxy", 143, 9)], containerStatuses=[ended("mxnet", 0, 5)])
    assert (pod.init_container, pod.exit_code) == ("", 0)


@pytest.mark.parametrize("kind", ["initContainerStatuses", "containerStatuses"])
def test_a_container_that_can_not_start_is_named_whichever_it_is(kind):
    main = [waiting("mxnet", "PodInitializing")]
    wrong = waiting("helper", "ImagePullBackOff", "no such image")
    statuses = {"containerStatuses": main, kind: [*(main if kind == "containerStatuses" else []), wrong]}
    pod = view(phase="Pending", **statuses)
    assert (pod.waiting_container, pod.waiting_reason, pod.waiting_message) == (
        "helper",
        "ImagePullBackOff",
        "no such image",
    )


def test_a_pod_that_starts_as_it_should_waits_for_its_mxnet_container():
    statuses = {"initContainerStatuses": [waiting("fetch", "PodInitializing")]}
    pod = view(phase="Pending", containerStatuses=[waiting("mxnet", "ContainerCreating")], **statuses)
    assert (pod.waiting_container, pod.waiting_reason) == ("mxnet", "ContainerCreating")


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("Unschedulable", "0/3 nodes are available", "0/3 nodes are available"),
        ("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates", "Scheduling is blocked"),
        ("SchedulerError", "", "SchedulerError"),
    ],
)
def test_a_pod_that_is_not_placed_says_why_whatever_the_reason(reason, message, words):
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    assert view(conditions=[condition]).unschedulable.startswith(words)


def test_a_pod_that_ended_and_tells_of_no_container_ended_when_it_was_no_longer_ready():
    """A virtual kubelet, say."""
    not_ready = {"type": "Ready", "status": "False", "lastTransitionTime": written(7)}
    pod = view(phase="Succeeded", conditions=[not_ready])
    assert (pod.exit_code, pod.finished_at) == (None, at(7))
    assert view(phase="Pending", conditions=[not_ready]).finished_at is None


def test_a_pods_age_and_scheduler_are_known():
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "labels": LABELS, "ownerReferences": [OWNER]}
    raw = {"metadata": metadata | {"creationTimestamp": written(3)}, "spec": {"schedulerName": "volcano"}}
    pod = project_pod(msgspec.Raw(json.dumps(raw).encode())).view
    assert (pod.created_at, pod.scheduler_name) == (at(3), "volcano")


@pytest.mark.parametrize(
    "status",
    [
        {"startTime": written(1)},
        {"containerStatuses": [{"name": "mxnet", "state": {"running": {}}}, waiting("proxy", "ContainerCreating")]},
        {"initContainerStatuses": [{"name": "fetch", "state": {"running": {}}}]},
    ],
)
def test_what_its_kubelet_has_reported_on_is_known(status):
    """A virtual kubelet may have a start time alone; a pod is Pending while a neighbour of mxnet is created."""
    assert view(phase="Pending", **status).reported
    assert not view(phase="Pending", conditions=[{"type": "PodScheduled", "status": "True"}]).reported
