"""What commands and pages show of a training: from its log, and from `status.training` where no log is read."""

import dataclasses

from mxnet_operator.cli.output.replica_state import replica_state
from mxnet_operator.cli.verbs.describe import write_description
from mxnet_operator.cli.verbs.get import table
from mxnet_operator.dashboard.job_list import View, parts
from mxnet_operator.readers.training_log import TrainingLog

TRAINING = {
    "epoch": 3,
    "epochs": 10,
    "estimatedRemainingSeconds": 120,
    "warnings": ["Train-mse is nan in epoch 2: the training has diverged."],
    "slowWorkers": [{"name": "worker-1", "node": "gpu-7", "percent": 17}],
}
WORDS = (
    "epoch 3 of 10, about 2m left; Train-mse is nan in epoch 2: the training has diverged.;"
    " Below 70 % of the workers' median speed: worker-1 on node gpu-7 (17 %)."
)


def job(training=None, state="Running"):
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": "digits", "namespace": "default", "uid": "u"},
        "spec": {"mxReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"containers": [{}]}}}}},
        "status": {"state": state, "training": training or TRAINING},
    }


def message_of(job, log=None):
    heading, [row] = table([job], {"u": log} if log else {}, wide=True, with_namespace=False)
    return row[heading.index("MESSAGE")]


def log_of(*lines):
    log = TrainingLog()
    for line in lines:
        log.take(line)
    return log


def test_a_job_whose_log_is_not_read_has_the_words_of_its_status():
    assert message_of(job()) == message_of(job(), TrainingLog()) == WORDS
    assert message_of(job(), log_of("Epoch[4] Train-mse=0.5")) == "epoch 4"
    assert message_of(job(state="Succeeded")) == ""
    assert "epoch 3 of 10, about 2m left; Train-mse is nan" in parts([job()], {}, View())["jobs"]
    assert "epoch 3" not in parts([job(state="Failed")], {}, View())["jobs"]


def test_why_a_job_waits_comes_before_its_training():
    waiting = job()
    waiting["status"]["conditions"] = [{"type": "PodsStarted", "status": "False", "message": "no node has room"}]
    assert message_of(waiting, log_of("Epoch[4] Train-mse=0.5")) == "no node has room"
    assert "no node has room" in parts([waiting], {"u": log_of("Epoch[4] Train-mse=0.5")}, View())["jobs"]


def test_what_another_operator_left_under_the_name_is_no_training():
    assert message_of(job(training={"epoch": "three"})) == ""


def test_a_description_has_the_stack_of_every_worker_that_stands_still(capsys):
    logs = {}
    for worker, line in (("worker-0", 11), ("worker-1", 16), ("worker-2", 20)):
        stall = f"mxjob: stalled for 300 s, without CPU or output, at train.py:{line}, in step"
        log = log_of("Epoch[0] loss=1", f'  File "train.py", line {line}, in step', "    work()", stall)
        logs[worker] = log
        assert log_of('  File "a.py"', "    old()", "on we go", stall).stack == []
    stalled = [{"name": worker, "seconds": 300, "place": "train.py:11"} for worker in logs]
    given = job(training={"stalled": stalled})
    write_description(given, workers=logs)
    shown = capsys.readouterr().out
    assert "Training:   stalled for 5m: worker-0, worker-1, worker-2 stand at train.py:11" in shown
    for worker, line in (("worker-0", 11), ("worker-1", 16), ("worker-2", 20)):
        assert (
            f'Stack of {worker}, which stands still:\n    File "train.py", line {line}, in step\n      work()' in shown
        )


def test_a_description_has_the_ranks_that_logs_tell(capsys):
    pods = [
        {"metadata": {"name": f"digits-worker-{each}", "labels": {"training.kubeflow.org/replica-index": str(each)}}}
        for each in (0, 1)
    ]
    states = [dataclasses.replace(replica_state(pod), replica=f"worker-{i}") for i, pod in enumerate(pods)]
    write_description(job(), states, workers={"worker-0": log_of("hello"), "worker-1": log_of("Node[0] hello")})
    shown = capsys.readouterr().out
    assert "digits-worker-1 (rank 0)" in shown
    assert shown.count("(rank") == 1
