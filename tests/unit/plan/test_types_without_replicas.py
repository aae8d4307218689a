"""Types of which a job asks for none, as charts list them: they decide nothing."""

from typing import Any

import msgspec
import pytest
from builders import NOW, JobBuilder, make_mxjob, plan

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob
from mxnet_operator.builders import build_pod, build_service
from mxnet_operator.integrations.child_kinds import KindsState
from mxnet_operator.integrations.gangs.gang import gang_of
from mxnet_operator.integrations.gangs.policy import GangPolicy
from mxnet_operator.integrations.kueue.objects import build_queue_workload
from mxnet_operator.integrations.kueue.policy import KueuePolicy, asks_for, priority_wanted
from mxnet_operator.integrations.kueue.workload import QueuePriority, QueueState
from mxnet_operator.plan import Observed
from mxnet_operator.plan.children import wanted_services
from mxnet_operator.plan.replicas import restart_scope

ASKED: tuple[dict[str, int], ...] = (
    {"Scheduler": 1, "Server": 1, "Worker": 4},
    {"Worker": 1},
    {"Worker": 3},
    {"TunerTracker": 1, "TunerServer": 2, "Tuner": 1},
    {"Tuner": 1},
    {"Scheduler": 1, "Server": 1, "Worker": 1, "TunerTracker": 1, "TunerServer": 1, "Tuner": 1},
)
POLICIES = (KueuePolicy(), GangPolicy())
ODD: dict[str, Any] = {
    "ports": [{"name": "mxjob-port", "containerPort": 1234}],
    "resources": {"limits": {"nvidia.com/gpu": 1, "alpha.kubernetes.io/nvidia-gpu": 1, "memory": "much"}},
}


def job_of(asked: dict[str, int], *, all_listed: bool) -> MXJob:
    """The job; where all types are listed, the others ask for no replica, with templates that would tell."""
    builder = make_mxjob()
    for replica_type in TYPES:
        if replica_type in asked:
            builder.replicas(replica_type, asked[replica_type])
        elif all_listed:
            odd(builder, replica_type)
    job = builder.obj()
    metadata = msgspec.structs.replace(job.metadata, labels={"kueue.x-k8s.io/queue-name": "a"})
    return msgspec.structs.replace(job, metadata=metadata)


def odd(builder: JobBuilder, replica_type: str) -> None:
    builder.replicas(replica_type, 0, **ODD)
    builder.template(replica_type, priorityClassName="high", restartPolicy="Always")
    builder.template_metadata(replica_type, labels={"kueue.x-k8s.io/queue-name": "b"})


@pytest.mark.parametrize("asked", ASKED, ids="-".join)
def test_a_type_without_replicas_decides_nothing_of_a_job(asked: dict[str, int]) -> None:
    written = job_of(asked, all_listed=False), job_of(asked, all_listed=True)
    (few, listed) = (with_defaults(job) for job in written)
    assert restart_scope(listed) == restart_scope(few)
    assert gang_of(listed) == gang_of(few)
    assert asks_for(listed) == asks_for(few)
    queued = Observed(facts=(QueueState(kinds=KindsState("Served")),))
    assert priority_wanted(listed, queued) == priority_wanted(few, queued) == QueuePriority("PriorityClass", "")
    of_few, of_listed = (plan(each, Observed(), NOW, integrations=POLICIES) for each in written)
    assert (of_listed.events, of_listed.actions) == (of_few.events, of_few.actions)


@pytest.mark.parametrize("asked", ASKED, ids="-".join)
def test_a_type_without_replicas_changes_no_object_of_a_job(asked: dict[str, int]) -> None:
    few, listed = (with_defaults(job_of(asked, all_listed=all_listed)) for all_listed in (False, True))
    priority = QueuePriority("PriorityClass", "")
    assert wanted_services(listed) == wanted_services(few)
    for wanted in wanted_services(few):
        services = [build_service(job, wanted.name, wanted.role) for job in (few, listed)]
        assert services[0] == services[1]
        selected = services[0]["spec"]["selector"].items()
        pods = [build_pod(few, kind, index, 0) for kind, count in asked.items() for index in range(count)]
        found = [pod["metadata"]["name"] for pod in pods if selected <= pod["metadata"]["labels"].items()]
        assert found == ([wanted.name] if wanted.role == "root" else [pod["metadata"]["name"] for pod in pods])
    assert build_queue_workload(listed, "w", "x", priority) == build_queue_workload(few, "w", "x", priority)
