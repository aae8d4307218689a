"""The condition, `mxjob` and the Airflow task say the same of a pod: they read it in one place."""

import msgspec
import pytest
from builders import NOW, make_mxjob

from mxnet_operator.child_objects import build_pod
from mxnet_operator.cli.output.replica_state import first_failed, in_order, replica_state
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.plan import Observed, plan
from mxnet_operator.views.pods import has_log
from mxnet_provider.job.replicas import failures, summary

AT = "2026-11-21T11:59:30Z"
LATER = "2026-11-21T11:59:31Z"


def ended(exit_code, at=AT, reason="Error", message=""):
    return {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": at, "message": message}}


def pod(job, replica_type, index, state, phase="Failed", **status):
    built = build_pod(plan(job, Observed(), NOW).job, replica_type, index, 0)
    metadata = {**built["metadata"], "uid": f"{replica_type}-{index}"}
    containers = [{"name": "mxnet", "state": state}]
    return {**built, "metadata": metadata, "status": {"phase": phase, "containerStatuses": containers, **status}}


def said(job, *pods):
    """What the condition, mxjob and the provider name as the failure: replica and exit code."""
    views = tuple(project_pod(msgspec.Raw(msgspec.json.encode(each))).view for each in pods)
    message = plan(job, Observed(views), NOW).status.conditions[-1].message
    first = first_failed(in_order([replica_state(each) for each in pods]))
    codes = {each["pod"]: each["exit_code"] for each in failures(pods)}
    return message, first, codes[first.pod]


GANG = make_mxjob("j").gang(servers=1, workers=2).condition("Running").obj()
CASES = {
    "a worker's own exit and a server that is killed": ({"Server": ended(137), "Worker": ended(1)}, "worker-0", 1),
    "a worker's own exit and a server that is stopped": ({"Server": ended(143), "Worker": ended(1)}, "worker-0", 1),
    "a server out of memory": ({"Server": ended(137, reason="OOMKilled"), "Worker": ended(1)}, "server-0", 137),
    "a server that is killed a second before": ({"Server": ended(137), "Worker": ended(1, LATER)}, "server-0", 137),
    "both by themselves": ({"Server": ended(2), "Worker": ended(1)}, "server-0", 2),
    "both killed": ({"Server": ended(137), "Worker": ended(137)}, "server-0", 137),
}


@pytest.mark.parametrize(("states", "replica", "code"), CASES.values(), ids=CASES)
def test_all_name_the_same_replica_of_several_that_failed(states, replica, code):
    message, first, told = said(GANG, *(pod(GANG, kind, 0, state) for kind, state in states.items()))
    assert f"{replica} exited with code {code}" in message
    assert (first.replica, first.exit_code, told) == (replica, code, code)


def test_an_init_container_that_fails_is_told_with_its_exit_code_by_all():
    job = make_mxjob("j").worker(1).obj()
    init = [{"name": "fetch", "state": ended(3, message="no such bucket")}]
    waiting = {"waiting": {"reason": "PodInitializing"}}
    message, first, told = said(job, failed := pod(job, "Worker", 0, waiting, initContainerStatuses=init))
    assert "worker-0's init container fetch exited with code 3" in message
    assert (first.state, first.exit_code, first.summary) == ("Init:Error", 3, "no such bucket")
    assert told == 3
    assert failures([failed]) == [{"pod": "j-worker-0", "exit_code": 3, "reason": "Error"}]
    assert summary([failed])[0]["exit_code"] == 3


def test_a_pod_that_no_kubelet_would_write_tells_nothing_and_breaks_nothing():
    odd = {"metadata": {"name": "j-worker-0"}, "status": {"phase": "Odd", "initContainerStatuses": "none"}}
    assert replica_state(odd).exit_code is None
    assert summary([odd])[0]["exit_code"] is None


PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope"'}}
INITIALIZING = {"waiting": {"reason": "PodInitializing"}}
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
WAITS = {
    "its image": ({"state": PULLING}, 'ImagePullBackOff: Back-off pulling image "nope"'),
    "an init container's image": (
        {"state": INITIALIZING, "initContainerStatuses": [{"name": "fetch", "state": PULLING}]},
        'ImagePullBackOff: Back-off pulling image "nope"',
    ),
    "its init containers": ({"state": INITIALIZING}, "PodInitializing"),
    "its preparation": ({"state": {"waiting": {"reason": "ContainerCreating", "message": "40 % built"}}}, "40 % built"),
    "a node": ({"state": {}, "conditions": [UNSCHEDULED]}, "Unschedulable: 0/1 nodes"),
    "the kubelet": ({"state": {}}, ""),
}


@pytest.mark.parametrize(("status", "why"), WAITS.values(), ids=WAITS)
def test_mxjob_says_what_a_replica_without_a_log_waits_for(status, why):
    waiting = pod(make_mxjob("j").worker(1).obj(), "Worker", 0, phase="Pending", **status)
    assert replica_state(waiting).why == why
    assert not has_log(waiting)
