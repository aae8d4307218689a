"""The progress of a job in words."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from mxnet_operator.cli.output.progress import Progress, replicas_text, training_text
from mxnet_operator.readers.training_log import TrainingLog

JOB = {
    "metadata": {"name": "digits"},
    "spec": {"mxReplicaSpecs": {"worker": {"replicas": 2}, "Scheduler": {}}},
    "status": {"state": "Running", "replicaStatuses": {"Worker": {"active": 1, "succeeded": 1}}},
}


def test_replicas_are_counted_in_the_order_in_which_they_start():
    assert replicas_text(JOB) == "scheduler 0/1, worker 2/2"


def test_a_job_without_a_status_has_no_replicas_yet():
    assert replicas_text({**JOB, "status": None}) == "scheduler 0/1, worker 0/2"


LOG = """\
INFO:root:Epoch[3] Batch [0-20]\tSpeed: 1234.56 samples/sec\taccuracy=0.950625
INFO:root:Epoch[3] Train-accuracy=0.97
INFO:root:Epoch[3] Time cost=10.120
INFO:root:Epoch[3] Validation-accuracy=0.98061234
INFO:root:Epoch[4] Batch [0-20]\tSpeed: 1111.11 samples/sec\taccuracy=0.96
""".splitlines()


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (0, ""),
        (1, "epoch 3  batch 20  1235 samples/s  accuracy 0.9506"),
        (4, "epoch 3  1235 samples/s  Train-accuracy 0.97  Validation-accuracy 0.9806"),
        (5, "epoch 4  batch 20  1111 samples/s  accuracy 0.96"),
    ],
)
def test_a_training_is_told_in_one_line_where_it_is_now_or_what_its_epoch_came_to(lines, text):
    log = TrainingLog()
    for line in LOG[:lines]:
        log.take(line)
    assert training_text(log) == text


def restarting(count, end):
    message = (
        f"mxjob digits is restarting because 1 Worker replica(s) failed (restart {count}; {count} of 6 count). {end}"
    )
    condition = {"type": "Restarting", "status": "True", "message": message}
    return {**JOB, "status": {"state": "Restarting", "conditions": [condition]}}


def test_an_attempt_that_ends_like_the_one_before_is_said_to():
    shown = io.StringIO()
    with Progress(Console(file=shown, width=200), show_log=False) as progress:
        for count, end in enumerate(
            ("exited with code 137:\nepoch 3", "exited with code 137:\nepoch 4", "was deleted"), 1
        ):
            progress.job(restarting(count, f"worker-0 {end}"))
            progress.job(JOB)
    lines = [line for line in shown.getvalue().splitlines() if "restarting" in line or "like the one" in line]
    assert [line.startswith("this attempt ended like the one before") for line in lines] == [False, False, True, False]
    assert lines[1].endswith("worker-0 exited with code 137: epoch 4")


def test_a_pipe_that_gets_no_log_gets_a_line_per_epoch():
    out = io.StringIO()

    with Progress(Console(file=out, width=200), show_log=False) as shown:
        for line in LOG:
            shown.log_line(line)

    assert out.getvalue().splitlines() == [
        "epoch 3  1235 samples/s  Train-accuracy 0.97  Validation-accuracy 0.9806",
        "epoch 4  1111 samples/s",
    ]


@pytest.mark.parametrize(
    ("stderr", "expected"), [(subprocess.STDOUT, "no newline\nit ends\n"), (subprocess.DEVNULL, "no newline")]
)
def test_a_message_begins_a_line_of_its_own_where_the_log_shares_its_pipe(stderr, expected):
    code = "from mxnet_operator.cli.output import terminal as t; t.write_log('no newline'); t.say('it ends')"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=stderr, text=True, check=True)
    assert done.stdout == expected


def test_a_pipe_gets_one_line_per_change():
    out = io.StringIO()
    shown = Progress(Console(file=out), show_log=False)

    for state in ("Created", "Running", "Running", "Succeeded"):
        shown.job({**JOB, "status": {**JOB["status"], "state": state}})

    assert [line.split(" (")[0] for line in out.getvalue().splitlines()] == [
        "digits: Created",
        "digits: Running",
        "digits: Succeeded",
    ]


@pytest.mark.parametrize("show_log", [True, False])
def test_a_training_that_diverges_is_told_of_once_for_each_figure(show_log):
    out = io.StringIO()
    names = ("loss", "accuracy")
    lines = [f"Epoch[{epoch}] {name}={value}" for epoch, value in [(3, "nan"), (4, "inf")] for name in names]

    with Progress(Console(file=out, width=200), show_log=show_log) as shown:
        for line in ["Epoch[2] loss=0.5", *lines]:
            shown.log_line(line)

    told = [line for line in out.getvalue().splitlines() if "diverged" in line]
    assert told == [f"{name} is nan in epoch 3: the training has diverged." for name in names]
    assert shown.training.warnings == told


def test_a_training_that_begins_again_from_before_it_diverged_has_not_diverged():
    log = TrainingLog()
    for line in ("Epoch[2] loss=0.5", "Epoch[3] loss=nan", "Epoch[2] loss=0.4"):
        log.take(line)
    assert log.warnings == []
