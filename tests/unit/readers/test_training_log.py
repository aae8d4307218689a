"""MXNet's lines about a training: epochs, the Speedometer's, and what they add up to."""

import pytest

from mxnet_operator.readers.training_log import BatchSpeed, EpochMetric, TrainingLog, parse_epoch_line, parse_speed_line

# Of examples/image-classification with MXNet 1.9.1: its first lines, the end of an epoch, the beginning of the next.
CAPTURED = """\
INFO:root:Node[0] start with arguments Namespace(num_epochs=3, num_layers=2, batch_size=32, kv_store='local', lr=0.05)
[17:23:58] ../src/executor/graph_executor.cc:1991: Subgraph backend MKLDNN is activated.
INFO:root:Epoch[0] Batch [0-5]\tSpeed: 159.17 samples/sec\taccuracy=0.125000\tcross-entropy=2.410384
INFO:root:Epoch[0] Batch [35-40]\tSpeed: 155.05 samples/sec\taccuracy=0.212500\tcross-entropy=2.167533
INFO:root:Epoch[0] Train-accuracy=0.154119
INFO:root:Epoch[0] Train-cross-entropy=2.294539
INFO:root:Epoch[0] Time cost=10.120
INFO:root:Epoch[0] Validation-accuracy=0.213542
INFO:root:Epoch[0] Validation-cross-entropy=2.165770
INFO:root:Epoch[1] Batch [0-5]\tSpeed: 166.11 samples/sec\taccuracy=0.291667\tcross-entropy=2.091877
""".splitlines()


def log_of(*lines):
    log = TrainingLog()
    for line in lines:
        log.take(line)
    return log


@pytest.mark.parametrize(
    ("line", "metric"),
    [
        ("Epoch[3] Validation-accuracy=0.98", EpochMetric(3, "Validation-accuracy", 0.98)),
        ("INFO:root:Epoch[0] Train-accuracy=0.363281", EpochMetric(0, "Train-accuracy", 0.363281)),
        ("Epoch[12] Time cost=190.507\n", EpochMetric(12, "Time cost", 190.507)),
        ("Epoch[1] Validation-top_k_accuracy_5=1e-3", EpochMetric(1, "Validation-top_k_accuracy_5", 0.001)),
        ("INFO:root:Epoch[0] Batch [20]\tSpeed: 84.39 samples/sec\taccuracy=0.159970", None),
        ("Epoch[3] Validation-accuracy=", None),
        ("Epoch[x] Validation-accuracy=0.9", None),
        ("Epoch[3] Validation-accuracy=high", None),
        ("", None),
    ],
)
def test_a_line_is_read_as_epoch_name_and_value(line: str, metric: EpochMetric | None) -> None:
    assert parse_epoch_line(line) == metric


@pytest.mark.parametrize(
    ("line", "speed"),
    [
        (CAPTURED[2], BatchSpeed(0, 5, 159.17, {"accuracy": 0.125, "cross-entropy": 2.410384})),
        (
            "INFO:root:Epoch[0] Batch [20]\tSpeed: 1234.56 samples/sec\taccuracy=0.5",
            BatchSpeed(0, 20, 1234.56, {"accuracy": 0.5}),
        ),
        (
            "2018-09-20 09:31:08,001 Epoch[0] Batch [10] Speed: 1910.41 samples/sec  Train-accuracy=0.200000",
            BatchSpeed(0, 10, 1910.41, {"Train-accuracy": 0.2}),
        ),
        ("Iter[2] Batch [50]\tSpeed: 12.00 samples/sec", BatchSpeed(2, 50, 12.0)),
        (
            "Epoch[1] Batch [0-20]\tSpeed: inf samples/sec\ttop_k_accuracy_5=0.25",
            BatchSpeed(1, 20, float("inf"), {"top_k_accuracy_5": 0.25}),
        ),
        ("Epoch[0] Validation-accuracy=0.5", None),
        ("Epoch[0] Batch [20]\tSpeed: fast samples/sec", None),
        ("Epoch[0] Batch [x]\tSpeed: 1.0 samples/sec", None),
        ("", None),
    ],
)
def test_a_speedometer_line_is_read_as_epoch_batch_speed_and_metrics(line, speed):
    assert parse_speed_line(line) == speed


def test_a_log_tells_the_figures_of_its_epochs():
    log = log_of(*CAPTURED)

    assert log.last == parse_speed_line(CAPTURED[-1])
    assert log.figures(0)["Validation-accuracy"] == 0.213542
    assert log.samples_per_second(0) == pytest.approx((159.17 + 155.05) / 2)
    assert log.history() == {
        "epochs": 2,
        "accuracy": 0.213542,
        "train_accuracy": [0.154119, None],
        "train_cross_entropy": [2.294539, None],
        "time_cost": [10.12, None],
        "validation_accuracy": [0.213542, None],
        "validation_cross_entropy": [2.16577, None],
        "samples_per_second": [157.11, 166.11],
    }


def test_a_log_without_figures_has_no_history():
    assert log_of("Loading data", "done").history() == {}


def test_epochs_that_a_restarted_job_trains_again_count_once_with_their_last_figures():
    first = [f"Epoch[{epoch}] Validation-accuracy=0.{epoch + 1}" for epoch in range(4)]
    again = ["Epoch[2] Batch [20]\tSpeed: 10.0 samples/sec", "Epoch[2] Validation-accuracy=0.9"]

    history = log_of(*first, *again).history()

    assert history["validation_accuracy"] == [0.1, 0.2, 0.9]
    assert history["epochs"] == 3
    assert history["samples_per_second"] == [None, None, 10.0]
