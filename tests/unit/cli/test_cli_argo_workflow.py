"""When an Argo Workflow has no use for its job any more, and when a step's time is over."""

from datetime import UTC, datetime

import pytest

from mxnet_operator.cli.output.progress import ProgressFile
from mxnet_operator.cli.running.interrupted_job import time_is_over, why_unwanted
from mxnet_operator.readers.argo_workflow import why_over
from mxnet_operator.readers.training_log import TrainingLog

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
OWNER = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "n", "uid": "w"}
JOB = {"metadata": {"name": "j", "ownerReferences": [OWNER]}}


def workflow(uid="w", spec=None, status=None, **metadata):
    return {"metadata": {"uid": uid, **metadata}, "spec": spec or {}, "status": status or {}}


@pytest.mark.parametrize(
    ("over", "why"),
    [
        (None, "is gone"),
        (workflow(uid="later"), "is gone, and another has its name"),
        (workflow(deletionTimestamp="2026-01-01T12:00:00Z"), "is being deleted"),
        (workflow(spec={"shutdown": "Terminate"}), "is being shut down (Terminate)"),
        (workflow(spec={"shutdown": "Stop"}, status={"phase": "Failed"}), "is over (Failed)"),
        (workflow(status={"phase": "Failed"}), "is over (Failed)"),
        (workflow(status={"phase": "Error"}), "is over (Error)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_workflow_that_is_at_its_end_does_not(over, why):
    assert why_over(over, JOB) == why


def test_a_job_without_an_owner_is_asked_for_by_the_workflows_name_alone_also_before_that_has_a_status():
    assert why_over(workflow(uid="any") | {"status": None}, {"metadata": {"name": "j"}}) == ""


async def test_a_stopped_workflow_needs_the_jobs_of_its_exit_handler_alone():
    """A runner that gets SIGTERM is stopped with its workflow, or belongs to the exit handler and was evicted."""
    job = {"metadata": {**JOB["metadata"], "namespace": "ml"}}
    labels: dict[str, str] = {}

    class Client:
        async def find(self, path):
            stopped = workflow(spec={"shutdown": "Stop"}, status={"phase": "Running"})
            return {"metadata": {"labels": labels}} if "/pods/" in path else stopped

    async def why(environment):
        return await why_unwanted(Client(), job, "n", environment)

    assert await why({}) == await why({"POD_NAME": "p"}) == "is being shut down (Stop)"
    labels["workflows.argoproj.io/on-exit"] = "true"
    assert await why({"POD_NAME": "p"}) == ""


def test_the_progress_of_a_step_is_the_epochs_that_have_ended_of_all(tmp_path):
    path = tmp_path / "progress"
    file = ProgressFile({"ARGO_PROGRESS_FILE": str(path)})
    for first in (0, 1):
        training = TrainingLog()
        training.epochs_wanted = 3
        written = []
        for epoch in range(first, first + 3):
            for line in (f"Epoch[{epoch}] Batch [20]\tSpeed: 9.0 samples/sec", f"Epoch[{epoch}] Train-accuracy=0.5"):
                training.take(line)
                file.update(training)
                written.append(path.read_text())
        assert written == ["0/3\n", "1/3\n", "1/3\n", "2/3\n", "2/3\n", "3/3\n"]


def test_there_is_no_progress_of_unknown_epochs_outside_of_steps_or_on_a_full_disk(tmp_path):
    training = TrainingLog()
    training.take("Epoch[0] Train-accuracy=0.5")
    path = tmp_path / "progress"
    ProgressFile({"ARGO_PROGRESS_FILE": str(path)}).update(training)
    training.epochs_wanted = 3
    ProgressFile({}).update(training)
    assert not path.exists()
    ProgressFile({"ARGO_PROGRESS_FILE": str(tmp_path / "no" / "folder")}).update(training)


def pod(seconds, started="2026-01-01T11:00:00Z"):
    return {"spec": {"activeDeadlineSeconds": seconds}, "status": {"startTime": started}}


@pytest.mark.parametrize(
    ("environment", "own_pod", "over"),
    [
        ({}, None, False),
        ({"ARGO_DEADLINE": "0001-01-01T00:00:00Z"}, None, False),
        ({"ARGO_DEADLINE": "2026-01-01T13:00:00Z"}, None, False),
        ({"ARGO_DEADLINE": "2026-01-01T12:00:00Z"}, None, True),
        ({"ARGO_DEADLINE": "2026-01-01T13:00:00+01:00"}, None, True),
        ({}, {"spec": {}, "status": {}}, False),
        ({}, pod(7200), False),
        ({}, pod(3600), True),
        ({}, pod(3601), True),
        ({}, {**pod(3600), "status": {}}, False),
    ],
)
def test_a_steps_time_is_what_its_workflow_and_its_pod_say(environment, own_pod, over):
    assert time_is_over(environment, own_pod, NOW) is over
