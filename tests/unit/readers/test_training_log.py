"""MXNet's lines about a training: epochs, the Speedometer's, and what they add up to."""

import pytest

from mxnet_operator.readers.log_figures import read_line
from mxnet_operator.readers.training_log import TrainingLog, epochs_asked_for

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


def test_a_log_tells_the_figures_of_its_epochs():
    log = log_of(*CAPTURED)

    assert log.last == read_line(CAPTURED[-1])
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


def test_what_lines_within_epochs_say_last_is_the_figure_of_an_epoch_where_no_other_line_has_it():
    log = log_of(
        "INFO:root:Epoch[0] Batch [100]\tSpeed: 10.00 samples/sec\tlog_loss=0.69\tauc=0.5",
        "INFO:root:Epoch[0] Batch [200]\tSpeed: 10.00 samples/sec\tlog_loss=0.6\tauc=0.7",
        "INFO:root:epoch 0, eval log loss = 0.65",
        "INFO:root:Epoch[1] Batch [100]\tSpeed: 10.00 samples/sec\tlog_loss=nan\tauc=0.8",
    )
    assert log.warnings == []
    log.take("INFO:root:epoch 2, eval log loss = 0.6")

    assert log.history() == {
        "epochs": 3,
        "validation_log_loss": [0.65, None, 0.6],
        "train_log_loss": [0.6, pytest.approx(float("nan"), nan_ok=True), None],
        "train_auc": [0.7, 0.8, None],
        "samples_per_second": [10.0, 10.0, None],
    }
    assert log.warnings == ["Train-log_loss is nan in epoch 1: the training has diverged."]


def test_iterations_that_other_lines_call_epochs_are_epochs():
    """Neural collaborative filtering of MXNet's examples."""
    log = log_of(
        "INFO:root:Epoch[0] Batch [100]\tSpeed: 10.00 samples/sec\tcross-entropy=0.5",
        "INFO:root:Iteration 0: HR = 0.4, NDCG = 0.2",
        "INFO:root:Epoch[1] Batch [100]\tSpeed: 10.00 samples/sec\tcross-entropy=0.4",
        "INFO:root:Iteration 1: HR = 0.5, NDCG = 0.3",
        "INFO:root:End. Best Iteration 1:  HR = 0.5, NDCG = 0.3. ",
    )
    history = log.history()
    assert (history["epochs"], history["hr"], history["ndcg"]) == (2, [0.4, 0.5], [0.2, 0.3])
    assert history["train_cross_entropy"] == [0.5, 0.4]
    assert "unit" not in history


def test_checkpoints_and_the_epochs_of_a_log_are_counted_apart():
    """Sockeye, whose epochs go on from 0 while its checkpoints go on from 1."""
    log = log_of(
        "Epoch[0] Batch [50]\tSpeed: 410.2 samples/sec 9120.3 tokens/sec 6.4 updates/sec\tperplexity=300",
        "Checkpoint [1]\tUpdates=50 Epoch=0 Samples=3200 Time-cost=31.2 Updates/sec=6.4",
        "Checkpoint [1]\tTrain-perplexity=300",
        "Checkpoint [1]\tValidation-perplexity=280",
        "Epoch[0] Batch [100]\tSpeed: 410.2 samples/sec 9120.3 tokens/sec 6.4 updates/sec\tperplexity=200",
        "Checkpoint [2]\tTrain-perplexity=200",
        "Checkpoint [2]\tValidation-perplexity=190",
    )
    assert log.history() == {
        "epochs": 2,
        "unit": "checkpoint",
        "time_cost": [31.2, None],
        "train_perplexity": [300, 200],
        "validation_perplexity": [280, 190],
    }


def test_a_long_history_of_iterations_is_thinned_evenly():
    log = log_of(*(f"Iteration {number}, loss: {number / 100}" for number in range(100, 500_001, 100)))
    history = log.history()
    assert (history["unit"], history["epochs"]) == ("iteration", 500_000)
    assert 500 <= len(history["loss"]) <= 1000
    assert history["loss"][-1] == 5000
    assert history["loss"][-2] == 5000 - history["every"] / 100


def test_one_absurd_epoch_makes_no_absurd_history():
    assert len(log_of("Epoch 1, loss 0.5", "Epoch 999999999, loss 0.4").history()["loss"]) <= 1000


def test_a_log_without_figures_has_no_history():
    assert log_of("Loading data", "done").history() == {}


def test_epochs_that_a_restarted_job_trains_again_count_once_with_their_last_figures():
    first = [f"Epoch[{epoch}] Validation-accuracy=0.{epoch + 1}" for epoch in range(4)]
    again = ["Epoch[2] Batch [20]\tSpeed: 10.0 samples/sec", "Epoch[2] Validation-accuracy=0.9"]

    history = log_of(*first, *again).history()

    assert history["validation_accuracy"] == [0.1, 0.2, 0.9]
    assert history["epochs"] == 3
    assert history["samples_per_second"] == [None, None, 10.0]


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
        ([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9], 0),
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
