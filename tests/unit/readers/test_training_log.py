"""MXNet's lines about a training: epochs, the Speedometer's, and what they add up to."""

import math

import pytest

from mxnet_operator.readers.training_log import (
    BatchSpeed,
    EpochMetric,
    TrainingLog,
    epochs_asked_for,
    parse_epoch_line,
    parse_speed_line,
)

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


# Lines as public scripts print them: the examples of MXNet 1.x, GluonCV, GluonNLP, and the books that teach Gluon.
MODULE = [
    ("Epoch[3] Validation-accuracy=0.98", {"Validation-accuracy": 0.98}),
    ("INFO:root:Epoch[3] Train-accuracy=0.363281", {"Train-accuracy": 0.363281}),
    ("Epoch[3] Time cost=190.507\n", {"Time cost": 190.507}),
    ("Epoch[3] Validation-top_k_accuracy_5=1e-3", {"Validation-top_k_accuracy_5": 0.001}),
    ("2018-09-20 09:31:08,001 Node[0] Epoch[3] Train-perplexity=187.4", {"Train-perplexity": 187.4}),
    ("INFO:root:epoch 3, eval MSE = 0.1 ", {"Validation-MSE": 0.1}),
    ("epoch 3, eval nll = 0.45, accuracy = 0.8", {"Validation-nll": 0.45, "accuracy": 0.8}),
]
GLUON = [
    ("[Epoch 3] Training: accuracy=0.875000", {"Train-accuracy": 0.875}),
    ("[Epoch 3] Validation: accuracy=0.75", {"Validation-accuracy": 0.75}),
    ("training acc at epoch 3: MSE=0.093", {"Train-MSE": 0.093}),
    (
        "[Epoch 3] training: err-top1=0.31 err-top5=0.12 loss=1.2",
        {"Train-err-top1": 0.31, "Train-err-top5": 0.12, "Train-loss": 1.2},
    ),
    ("INFO:root:[Epoch 3] speed: 812 samples/sec\ttime cost: 9.5", {"Speed": 812, "Time cost": 9.5}),
    (
        "[Epoch 3] train=0.912 val=0.887 loss=0.301 time: 21.4",
        {"Train": 0.912, "Validation": 0.887, "loss": 0.301, "Time cost": 21.4},
    ),
    (
        "[Epoch 3] Training cost: 34.221, CrossEntropy=2.101, SmoothL1=1.211",
        {"Time cost": 34.221, "CrossEntropy": 2.101, "SmoothL1": 1.211},
    ),
    (
        "[Epoch 3] time cost 12.34s, validation loss 5.23, validation ppl 187.20",
        {"Time cost": 12.34, "Validation-loss": 5.23, "Validation-perplexity": 187.2},
    ),
    (
        "[Epoch 3] valid Loss=3.8123, valid ppl=45.2512, valid bleu=12.31",
        {"Validation-loss": 3.8123, "Validation-perplexity": 45.2512, "Validation-bleu": 12.31},
    ),
    (
        "[Epoch 3] Finished in 9.123s, training accuracy: 0.9012, validation accuracy: 0.85",
        {"Time cost": 9.123, "Train-accuracy": 0.9012, "Validation-accuracy": 0.85},
    ),
    (
        "epoch 3, loss 0.7885, train acc 0.747, test acc 0.804, time 11.5 sec",
        {"loss": 0.7885, "Train-accuracy": 0.747, "Test-accuracy": 0.804, "Time cost": 11.5},
    ),
    (
        "Epoch 3: loss 0.788, train acc 0.741, test acc 0.803, in 11.5 sec",
        {"loss": 0.788, "Train-accuracy": 0.741, "Test-accuracy": 0.803, "Time cost": 11.5},
    ),
    (
        "Epoch 3. Loss: 0.878, Train_acc 0.970666, Test_acc 0.973925",
        {"loss": 0.878, "Train-accuracy": 0.970666, "Test-accuracy": 0.973925},
    ),
    ("Epoch 3: Test_acc 0.9", {"Test-accuracy": 0.9}),
    ("Epoch [3/10], Loss: 1.5, Val_acc: 0.5", {"loss": 1.5, "Validation-accuracy": 0.5}),
    ("Epoch 3/10 - loss: 0.5 - acc: 97.5%", {"loss": 0.5, "accuracy": 0.975}),
]
NO_METRICS = [
    "",
    "Epoch[3] Validation-accuracy=",
    "Epoch[x] Validation-accuracy=0.9",
    "Epoch[3] Validation-accuracy=high",
    "INFO:root:Epoch[0] Batch [20]\tSpeed: 84.39 samples/sec\taccuracy=0.159970",
    "[Epoch 3 Batch 200] loss 4.50, perplexity 90.02",
    "epoch=3 step=100 loss=0.5",
    "Epoch[0] Resetting Data Iterator",
    "[Epoch 0] Begin, current learning rate: 0.0010",
    "Epoch 3: learning rate 0.001",
    "Epoch 3 of 10",
    "Epoch 3/10",
    "Epoch 3: validation loss improved from 0.5 to 0.4",
    "Epoch 3: ETA: 12:34:56",
    "Epoch 3 saved to model-0003.params",
    "Loading epoch 7 from model-0007.params",
    'Saved checkpoint to "mnist-0003.params"',
    "Update[500]: Change learning rate to 5.00000e-03",
    "start with arguments Namespace(num_epochs=3, lr=0.05)",
    "num_epochs=10 accuracy=0.9",
    "starting epoch 4 with 500 samples",
    "test loss 4.77, test ppl 117.9",
]


@pytest.mark.parametrize(("line", "metrics"), [*MODULE, *GLUON])
def test_the_metrics_of_an_epoch_are_read_in_every_usual_spelling(line, metrics):
    assert parse_epoch_line(line) == tuple(EpochMetric(3, name, value) for name, value in metrics.items())


@pytest.mark.parametrize("line", NO_METRICS)
def test_a_line_without_the_metrics_of_an_epoch_has_none(line):
    assert parse_epoch_line(line) == ()


def test_a_metric_that_is_not_a_number_is_read_as_such():
    (metric,) = parse_epoch_line("Epoch [3/10], train loss: nan")
    assert metric.name == "Train-loss"
    assert math.isnan(metric.value)


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
        (
            "[Epoch 0 Batch 10] Training: accuracy=0.5, 1234.5 samples/s",
            BatchSpeed(0, 10, 1234.5, {"Train-accuracy": 0.5}),
        ),
        ("[Epoch 1][Batch 9], Speed: 31.2 samples/sec, SmoothL1=1.3", BatchSpeed(1, 9, 31.2, {"SmoothL1": 1.3})),
        (
            "[Epoch 0][Batch 1][Samples 32] time/batch: 0.1s, training loss: 0.5",
            BatchSpeed(0, 1, None, {"Train-loss": 0.5}),
        ),
        ("[Epoch 3 Batch 200] loss 4.50, ppl 90.02", BatchSpeed(3, 200, None, {"loss": 4.5, "perplexity": 90.02})),
        ("Epoch [1] Batch [49]\tSpeed: 5 samples/sec\tlr=0.1", BatchSpeed(1, 49, 5)),
        ("Batch 200. Loss: 0.4", None),
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


def test_the_log_of_a_gluon_script_is_a_history_too():
    history = log_of(
        "[Epoch 0] speed: 800 samples/sec\ttime cost: 9.5",
        "Epoch 0: loss 2.3, train acc 0.5, test acc 0.4",
        "Epoch 1: loss 1.2, train acc 0.8, test acc 0.7",
    ).history()

    assert history == {
        "epochs": 2,
        "accuracy": 0.7,
        "time_cost": [9.5, None],
        "loss": [2.3, 1.2],
        "train_accuracy": [0.5, 0.8],
        "test_accuracy": [0.4, 0.7],
        "samples_per_second": [800.0, None],
    }


@pytest.mark.parametrize(("first", "epochs"), [(0, 3), (1, 3), (5, 8)])
def test_epochs_are_counted_whether_a_script_begins_with_0_or_1_or_goes_on_later(first, epochs):
    log = log_of(*(f"Epoch[{epoch}] Train-accuracy=0.5" for epoch in range(first, first + 3)))
    assert log.history()["epochs"] == epochs


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ([], ""),
        (["Epoch[0] Batch [20] accuracy=0.1"], "epoch 0 of 10"),
        (["Epoch[0] Time cost=10.5", "Epoch[0] Validation-accuracy=0.5"], "epoch 0 of 10, about 1m34s left"),
        (["Epoch[0] Time cost=10.5", "Epoch[1] Batch [20] accuracy=0.1"], "epoch 1 of 10, about 1m34s left"),
        (["Epoch 1: loss 0.5, time 10.5 sec"], "epoch 1 of 10, about 1m34s left"),
        (["Epoch 3/4: loss 0.5, time 10.5 sec"], "epoch 3 of 4"),
        (["Epoch[9] Time cost=10.5"], "epoch 9 of 10"),
        (["Epoch[9] Time cost=nan", "Epoch[11] Time cost=3"], "epoch 11 of 10"),
        (
            [
                "Epoch[0] Time cost=10",
                "  File 'a.py'",
                "mxjob: stalled for 300 s, without CPU or output, at a.py:3, in f",
            ],
            "stalled for 300 s, without CPU or output, at a.py:3, in f",
        ),
        (["mxjob: stalled for 300 s", "Epoch[1] loss=1"], "epoch 1 of 10"),
        (["[Epoch 2/3][Batch 5] loss=0.5"], "epoch 2 of 3"),
    ],
)
def test_the_position_has_the_epochs_asked_for_and_the_time_that_is_left(lines, where):
    log = TrainingLog()
    log.epochs_wanted = 10
    for line in lines:
        log.take(line)
    assert log.where() == where


def test_the_time_that_is_left_includes_what_a_script_does_between_epochs():
    now = [0.0]
    log = TrainingLog(lambda: now[0])
    log.epochs_wanted = 10
    for epoch in range(4):
        log.take(f"Epoch[{epoch}] Time cost=1")
        now[0] += 20
    assert log.where() == "epoch 3 of 10, about 2m left"


@pytest.mark.parametrize(
    ("words", "epochs"),
    [
        (["python", "train_mnist.py", "--num-epochs", "10", "--lr-step-epochs", "10,20"], 10),
        (["python", "train.py", "--epochs=3", "--epochs=5"], 5),
        (["sh", "-c", "cd /src && python train.py --n_epochs 7; echo done"], 7),
        (["python", "train.py", "--load-epoch", "3", "--warmup-epochs", "2", "--max-epoch", "ten"], None),
    ],
)
def test_a_command_tells_how_many_epochs_it_asks_for(words, epochs):
    assert epochs_asked_for({"command": words[:1], "args": words[1:]}) == epochs
    assert epochs_asked_for({"args": None}) is None


@pytest.mark.parametrize(
    ("values", "warnings"),
    [
        ([0.09, 0.1, 0.095, 0.1, 0.09], 1),
        ([0.09, 0.1, 0.095, 0.1], 0),
        ([0.09, 0.1, 0.095, 0.1, 0.2], 0),
        ([0.99, 0.99, 0.99, 0.99, 0.99], 0),
        ([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9], 1),
    ],
)
def test_an_accuracy_that_does_not_move_is_warned_of_once(values, warnings):
    log = log_of(*(f"Epoch[{epoch}] Train-accuracy={value}" for epoch, value in enumerate(values)))
    sentence = "Train-accuracy has stayed at {} to 0.1 for 5 epochs: the model does not learn so far. Check the"
    assert [each.startswith(sentence.format(min(values))) for each in log.warnings] == [True] * warnings


def test_a_restart_takes_back_warnings_of_its_epochs():
    flat = [f"Epoch[{epoch}] Train-accuracy=0.1" for epoch in range(5)]
    assert log_of(*flat, "Epoch[2] Train-accuracy=0.3").warnings == []


def test_the_usual_speed_is_the_median_of_the_newest_ten_and_unknown_of_two():
    log = TrainingLog()
    speeds = [5.0, 100.0, 1.0, *[50.0] * 6, 300.0, 300.0, 300.0]
    for batch, speed in enumerate(speeds[:2]):
        log.take(f"Epoch[0] Batch [{batch}] Speed: {speed} samples/sec")
    assert log.usual_speed() is None
    for batch, speed in enumerate(speeds[2:]):
        log.take(f"Epoch[1] Batch [{batch}] Speed: {speed} samples/sec")
    assert log.usual_speed() == 50.0
