"""How many replicas clients count: those of the present attempt."""

from typing import Any

from builders import make_mxjob

from mxnet_operator.client.jobs import ready_counts, replicas


def job(**status: Any) -> dict[str, Any]:
    running = {"Scheduler": {"active": 1}, "Server": {"active": 1}, "Worker": {"active": 2}}
    return {**make_mxjob().gang(servers=1, workers=3).manifest(), "status": {"replicaStatuses": running, **status}}


def test_an_attempt_with_fewer_workers_counts_these() -> None:
    assert ready_counts(job())["Worker"] == (2, 3)
    fewer = job(fewerReplicas={"Worker": 2})
    assert ready_counts(fewer)["Worker"] == (2, 2)
    assert replicas(fewer) == ["scheduler-0", "server-0", "worker-0", "worker-1"]
