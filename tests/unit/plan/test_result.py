"""What a job's script leaves behind is kept in its status."""

from datetime import timedelta

import pytest
from builders import NOW, JobBuilder, make_mxjob, make_pod, observe, plan

from mxnet_operator.api.types import MXJobStatus

RESULT = '{"accuracy": 0.99}'


def status_after(builder: JobBuilder, *pods: tuple[str, int, str | None], seconds: int = 0) -> MXJobStatus:
    """The status after a look at pods that have written these messages and ended, or (None) still run."""
    job = builder.obj()
    made = [
        make_pod(job, kind, index).running()
        if said is None
        else make_pod(job, kind, index).succeeded().set(message=said)
        for kind, index, said in pods
    ]
    answer = plan(job, observe(job, *made), NOW + timedelta(seconds=seconds))
    assert answer.status is not None
    return answer.status


def test_worker_0_tells_the_result_and_no_other() -> None:
    builder = make_mxjob().worker(2).condition("Created").condition("Running")
    assert status_after(builder, ("Worker", 0, RESULT), ("Worker", 1, "other")).result == RESULT


def test_a_tuning_has_its_tuners() -> None:
    builder = make_mxjob().replicas("TunerTracker", 1).replicas("TunerServer", 1).replicas("Tuner", 1)
    builder.condition("Created").condition("Running")
    pods = (("TunerTracker", 0, None), ("TunerServer", 0, None), ("Tuner", 0, RESULT))
    assert status_after(builder, *pods).result == RESULT


def test_it_is_recorded_with_the_replicas_end_and_outlives_the_pod() -> None:
    builder = make_mxjob().worker(2).condition("Created").condition("Running")
    recorded = status_after(builder, ("Worker", 0, RESULT), ("Worker", 1, None), seconds=10)
    assert (recorded.completed_indexes, recorded.result) == ({"Worker": "0"}, RESULT)
    later = make_mxjob().worker(2).status(completedIndexes={"Worker": "0"}, result=RESULT).condition("Running")
    assert status_after(later, ("Worker", 1, "")).result == RESULT


def test_a_result_longer_than_the_field_does_not_stop_the_job() -> None:
    builder = make_mxjob().worker(1).condition("Created").condition("Running")
    status = status_after(builder, ("Worker", 0, "x" * 5000))
    assert (status.state, len(status.result)) == ("Succeeded", 4096)


@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
def test_a_restarted_gang_has_no_result_yet(policy: str) -> None:
    builder = make_mxjob().worker(2).restart(policy).condition("Created").condition("Running")
    job = builder.obj()
    pods = (make_pod(job, "Worker", 0).succeeded().set(message=RESULT), make_pod(job, "Worker", 1).failed(137))
    answer = plan(job, observe(job, *pods), NOW)
    assert (answer.status.state, answer.status.result) == ("Restarting", "")
