"""The condition, `mxjob`, the report and the Airflow task say the same of a pod: they read it in one place."""

from itertools import product

import msgspec
import pytest
from builders import NOW, make_mxjob, plan

from mxnet_operator.builders import build_pod
from mxnet_operator.cli.output.replica_state import first_failed, replica_state
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.dashboard.job_run import run_of
from mxnet_operator.plan import Observed
from mxnet_operator.plan.replicas import ReplicaState, replicas_of
from mxnet_operator.readers.pods import has_log, in_order
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_provider.job.replicas import failures, summary

AT = "2026-11-21T11:59:30Z"
LATER = "2026-11-21T11:59:31Z"


def ended(exit_code, at=AT, reason="Error", message=""):
    return {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": at, "message": message}}


def pod(job, replica_type, index, state, phase="Failed", **status):
    begun = BEGUN if job is ONE else plan(job, Observed(), NOW).job
    built = build_pod(begun, replica_type, index, 0)
    metadata = {**built["metadata"], "uid": f"{replica_type}-{index}"}
    containers = [{"name": "mxnet", "state": state}]
    return {**built, "metadata": metadata, "status": {"phase": phase, "containerStatuses": containers, **status}}


def said(job, *pods):
    """What the condition, mxjob and the provider name as the failure: replica and exit code."""
    views = tuple(project_pod(msgspec.Raw(msgspec.json.encode(each))).view for each in pods)
    message = plan(job, Observed(views), NOW).status.conditions[-1].message
    first = first_failed(map(replica_state, in_order(pods)))
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


ONE = make_mxjob("j").worker(1).obj()
BEGUN = plan(ONE, Observed(), NOW).job
JOB = {"metadata": {"name": "j", "namespace": "default", "uid": ONE.metadata.uid}, "spec": {"mxReplicaSpecs": {}}}
CODES = (None, 0, 1, 3, 137, 143)
PODS = [
    {"phase": phase, "pod_reason": pod_reason, "code": code, "reason": reason, "init_code": init_code, "asked": asked}
    for phase, pod_reason, code, reason, init_code, asked in product(
        ("Pending", "Running", "Succeeded", "Failed"),
        ("", "DeadlineExceeded", "Evicted", "OutOfcpu", "UnexpectedAdmissionError"),
        CODES,
        ("Error", "OOMKilled"),
        (None, 3, 143),
        ("", "stop", "deletion"),
    )
    if init_code is None or code is None
]
KILLED = (137, 143)


def of_facts(*, phase, pod_reason, code, reason, init_code, asked):
    """Make the pod of worker-0 of a job of one."""
    init = [] if init_code is None else [{"name": "fetch", "state": ended(init_code)}]
    state = {} if code is None else ended(code, reason=reason)
    built = pod(ONE, "Worker", 0, state, phase, reason=pod_reason, initContainerStatuses=init)
    if asked == "stop":
        built["spec"]["activeDeadlineSeconds"] = 1
    if asked == "deletion":
        built["metadata"] |= {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": 1}
    return built


def failed_for(one):
    """Return what each of the four readers says of a pod: whether its replica failed."""
    view = project_pod(msgspec.Raw(msgspec.json.encode(one))).view
    [replica] = replicas_of(BEGUN, Observed((view,)))
    [reported] = run_of(JOB, [one], TrainingLog()).replicas
    [summed_up] = summary([one])
    assert summed_up["outcome"] == reported.outcome
    return {
        "plan": replica.state is ReplicaState.FAILED,
        "mxjob": replica_state(one).has_failed,
        "provider": failures([one]) != [],
        "report": reported.outcome == "failed",
    }


@pytest.mark.parametrize("asked", ["", "stop", "deletion"])
def test_all_say_of_every_pod_alike_whether_its_replica_failed(asked):
    for facts in (each for each in PODS if each["asked"] == asked):
        told = failed_for(of_facts(**facts))
        if asked:  # of what it stopped itself the controller judges nothing any more
            del told["plan"]
        assert len(set(told.values())) == 1, (facts, told)


def test_a_replica_that_ended_with_a_code_of_its_own_has_failed_even_if_it_was_stopped_then():
    for facts in PODS:
        own = facts["code"] not in (None, 0, *KILLED) or (facts["code"] in KILLED and facts["reason"] == "OOMKilled")
        told = failed_for(of_facts(**facts))
        if own:
            assert (told["mxjob"], told["provider"], told["report"]) == (True, True, True), facts


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"code": 1, "pod_reason": "DeadlineExceeded", "asked": "stop"}, "failed"),
        ({"code": 143, "pod_reason": "DeadlineExceeded", "asked": "stop"}, "stopped"),
        ({"code": None, "pod_reason": "DeadlineExceeded", "asked": "stop"}, "stopped"),
        ({"code": 0, "pod_reason": "DeadlineExceeded", "asked": "stop"}, "succeeded"),
        ({"code": 143, "pod_reason": "DeadlineExceeded"}, "failed"),
        ({"code": 143, "asked": "deletion"}, "stopped"),
        ({"init_code": 3}, "failed"),
        ({"pod_reason": "Evicted"}, "failed"),
        ({"pod_reason": "OutOfcpu"}, "failed"),
        ({"code": 0, "pod_reason": "UnexpectedAdmissionError"}, "failed"),
        ({"code": 0}, "succeeded"),
        ({"phase": "Running", "code": 3}, "failed"),
        ({"phase": "Running"}, "unfinished"),
    ],
)
def test_the_outcome_of_a_replica(facts, outcome):
    nothing = {"phase": "Failed", "pod_reason": "", "code": None, "reason": "Error", "init_code": None, "asked": ""}
    [summed_up] = summary([of_facts(**nothing | facts)])
    assert summed_up["outcome"] == outcome


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
