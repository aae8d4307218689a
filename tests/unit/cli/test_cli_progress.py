"""The progress of a job in words."""

import io

import pytest
from rich.console import Console

from mxnet_operator.api.metrics import EpochMetric
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.progress import PlainProgress, elapsed_text, metric_text, replicas_text
from mxnet_operator.cli.times import duration

JOB = {
    "metadata": {"name": "digits"},
    "spec": {"mxReplicaSpecs": {"worker": {"replicas": 2}, "Scheduler": {}}},
    "status": {"state": "Running", "replicaStatuses": {"Worker": {"active": 1, "succeeded": 1}}},
}


def test_replicas_are_counted_in_the_order_in_which_they_start():
    assert replicas_text(JOB) == "scheduler 0/1, worker 2/2"


def test_a_job_without_a_status_has_no_replicas_yet():
    assert replicas_text({**JOB, "status": None}) == "scheduler 0/1, worker 0/2"


@pytest.mark.parametrize(("seconds", "text"), [(7.9, "7 s"), (187, "3:07 min"), (7387, "2:03:07 h")])
def test_times_are_short_to_read(seconds, text):
    assert elapsed_text(seconds) == text


def test_a_metric_is_short_to_read():
    assert metric_text(EpochMetric(3, "Validation-accuracy", 0.98061234)) == "epoch 3 Validation-accuracy 0.9806"


def test_a_pipe_gets_one_line_per_change():
    out = io.StringIO()
    shown = PlainProgress(Console(file=out), show_log=False)

    for state in ("Created", "Running", "Running", "Succeeded"):
        shown.job({**JOB, "status": {**JOB["status"], "state": state}})

    assert [line.split(" (")[0] for line in out.getvalue().splitlines()] == [
        "digits: Created",
        "digits: Running",
        "digits: Succeeded",
    ]


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400)])
def test_durations_are_read_as_people_write_them(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1.5h", "-3s", "1d"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(CommandError, match="no duration"):
        duration(text)
