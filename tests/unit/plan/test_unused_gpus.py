"""Replicas that ask for a GPU that they never use."""

from typing import Any

import pytest
from builders import NOW, make_mxjob, plan

from mxnet_operator.plan import Observed
from mxnet_operator.plan.notices import unused_gpus

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
