"""What became of the replicas, from pods as an API server returns them."""

import pytest

from mxnet_operator.api import names
from mxnet_operator.readers.pods import has_failed, has_log, is_log_complete
from mxnet_provider.job import replicas


def pod(replica_type, index, state=None, phase="Running"):
    name = f"digits-{replica_type}-{index}"
    labels = {names.LABEL_REPLICA_TYPE: replica_type, names.LABEL_REPLICA_INDEX: str(index)}
    statuses = [{"name": "sidecar", "state": {"running": {}}}, {"name": "mxnet", "state": state}] if state else []
    return {
        "metadata": {"name": name, "labels": labels, "creationTimestamp": "2026-11-21T12:00:00Z"},
        "status": {"phase": phase, "containerStatuses": statuses},
    }


def ended(exit_code, message=""):
    times = {"startedAt": "2026-11-21T12:00:01Z", "finishedAt": "2026-11-21T12:00:09Z"}
    return {"terminated": {"exitCode": exit_code, "message": message, **times}}


RUNNING = {"running": {"startedAt": "2026-11-21T12:00:01Z"}}
WAITING = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("of", "started", "over", "failed"),
    [
        (pod("worker", 0, phase="Pending"), False, False, False),
        (pod("worker", 0, WAITING), False, False, False),
        (pod("worker", 0, RUNNING), True, False, False),
        (pod("worker", 0, ended(0)), True, True, False),
        (pod("worker", 0, ended(3)), True, True, True),
        (pod("worker", 0, phase="Failed"), False, True, True),
    ],
)
def test_the_mxnet_container_says_how_a_replica_is(of, started, over, failed):
    assert (has_log(of), is_log_complete(of), has_failed(of)) == (started, over, failed)


def test_a_failure_of_its_own_stays_one_if_the_replica_is_stopped_afterwards():
    culprit = {**pod("worker", 0, ended(1), phase="Failed"), "spec": {"activeDeadlineSeconds": 1}}
    culprit["status"]["reason"] = "DeadlineExceeded"
    failed = replicas.failures([culprit])
    assert [each["exit_code"] for each in failed] == [1]
    assert "digits-worker-0 ended with 1" in replicas.reason_to_skip(failed, {1})


def test_a_summary_lists_replicas_in_the_order_in_which_they_depend_on_each_other():
    pods = [pod("worker", 10, RUNNING), pod("worker", 2, RUNNING), pod("server", 0, ended(0)), pod("scheduler", 0)]
    assert [r["pod"] for r in replicas.summary(pods)] == [
        "digits-scheduler-0",
        "digits-server-0",
        "digits-worker-2",
        "digits-worker-10",
    ]
    assert [r["started_at"] for r in replicas.summary(pods)] == [None, *["2026-11-21T12:00:01Z"] * 3]


def test_the_end_of_a_stopped_workers_log_is_no_result():
    stopped = pod("worker", 0, ended(143, "Epoch[3] Validation-accuracy=0.31"), phase="Failed")
    stopped["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:09Z"
    assert replicas.result_text([stopped]) == ""


def test_without_pods_there_is_no_result():
    assert not replicas.result_text([])
    assert replicas.summary([]) == []
