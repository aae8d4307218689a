"""The report that `mxjob run` writes: made of the job, its pods, and what the log told."""

import json

from mxnet_operator.api.types import SlowWorker
from mxnet_operator.dashboard.job_run import run_of
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.report import html

POD = {"spec": {"containers": [{"name": "mxnet", "image": "i"}]}}
JOB = {
    "metadata": {"name": "digits", "namespace": "default", "uid": "of-the-job"},
    "spec": {"mxReplicaSpecs": {"Scheduler": {"template": POD}, "worker": {"replicas": 2, "template": POD}}},
    "status": {
        "state": "Succeeded",
        "startTime": "2026-11-21T12:00:00Z",
        "completionTime": "2026-11-21T12:00:12Z",
        "conditions": [{"type": "Succeeded", "status": "True", "message": "MXJob digits is successfully completed."}],
    },
}


def pod(kind, index, message="", owner="of-the-job"):
    ended = {"startedAt": "2026-11-21T12:00:01Z", "finishedAt": "2026-11-21T12:00:11Z", "exitCode": 0}
    return {
        "metadata": {
            "name": f"digits-{kind}-{index}",
            "creationTimestamp": "2026-11-21T12:00:00Z",
            "ownerReferences": [{"uid": owner}],
            "labels": {
                "training.kubeflow.org/replica-type": kind,
                "training.kubeflow.org/replica-index": str(index),
            },
        },
        "status": {"containerStatuses": [{"name": "mxnet", "state": {"terminated": {**ended, "message": message}}}]},
    }


def log_of(*lines):
    log = TrainingLog()
    for line in lines:
        log.take(line)
    return log


def test_a_run_has_its_replicas_in_order_and_its_times():
    pods = [pod("worker", 1), pod("scheduler", 0), pod("worker", 0), pod("worker", 0, owner="of-another")]

    run = run_of(JOB, pods, TrainingLog())

    assert [replica.label for replica in run.replicas] == ["scheduler-0", "worker-0", "worker-1"]
    assert (run.state, run.duration_s, run.replicas[0].seconds) == ("Succeeded", 12.0, 10.0)
    assert run.message == "MXJob digits is successfully completed."


def test_the_rank_of_the_worker_whose_log_was_read_is_in_the_table():
    training = TrainingLog()
    training.take("INFO:root:Epoch[0] Train-accuracy=0.5")
    assert "(rank" not in html(run_of(JOB, [pod("worker", 0)], training))
    training.take("INFO:root:Node[1] Epoch[1] Train-accuracy=0.6")
    page = html(run_of(JOB, [pod("worker", 0), pod("worker", 1)], training))
    assert "worker-0 (rank 1)</th>" in page
    assert "worker-1</th>" in page


def test_workers_that_are_slow_are_named_below_the_curves():
    training = log_of("Epoch[0] Train-accuracy=0.5")
    training.slow_workers = (SlowWorker(name="worker-1", node="a", percent=17),)
    assert "worker-1 on node a (17 %).</p>" in html(run_of(JOB, [pod("worker", 0)], training))


def test_what_was_ended_after_its_job_is_stopped_not_failed():
    ended = {**pod("server", 0), "spec": {"activeDeadlineSeconds": 1}}
    ended["status"]["reason"] = "DeadlineExceeded"
    ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] = 143

    assert [replica.outcome for replica in run_of(JOB, [ended], TrainingLog()).replicas] == ["stopped"]


def test_what_the_script_reports_counts_more_than_its_log():
    log = log_of("Epoch[0] Batch [20]\tSpeed: 10.0 samples/sec", "Epoch[0] Validation-accuracy=0.5")
    reported = json.dumps({"accuracy": 0.75, "validation_accuracy": [0.75]})

    assert run_of(JOB, [pod("worker", 0)], log).accuracy == 0.5
    run = run_of(JOB, [pod("worker", 0, reported), pod("worker", 1, '{"accuracy": 0.1}')], log)

    assert (run.accuracy, run.history("samples_per_second")) == (0.75, ((1, 10.0),))


def test_a_last_word_that_is_no_json_object_is_no_result():
    for message in ("Traceback", "[1]", '"x"', ""):
        assert run_of(JOB, [pod("worker", 0, message)], TrainingLog()).result == {}


def test_a_job_that_never_started_has_a_report():
    run = run_of({**JOB, "status": None}, [], TrainingLog())
    assert (run.replicas, run.duration_s, run.state) == ((), None, "new")


def test_an_epoch_of_which_the_log_says_nothing_did_not_diverge_and_one_with_nan_did():
    lines = ["Epoch[0] Train-accuracy=0.5", "Epoch[1] Train-accuracy=nan", "Epoch[1] Validation-accuracy=0.5"]
    lines += ["Epoch[2] Train-accuracy=nan", "Epoch[2] Validation-accuracy=nan"]
    run = run_of(JOB, [], log_of(*lines))
    assert (run.diverged("train_accuracy"), run.diverged("validation_accuracy")) == ((2, 3), (3,))
    assert run.history("validation_accuracy") == ((2, 0.5),)
    assert run.accuracy is None


def test_numbers_that_a_script_reports_and_json_does_not_know_are_no_error():
    message = '{"accuracy": NaN, "train_accuracy": [0.5, NaN, 1e999], "epochs": 3, "best": ' + "9" * 400 + "}"
    run = run_of(JOB, [pod("worker", 0, message)], TrainingLog())
    assert (run.accuracy, run.diverged("train_accuracy")) == (None, (2, 3))
