"""Figures from log lines: the history that becomes an XCom, the gauges, and what a user is told when one diverges."""

import math

import pytest

from mxnet_provider.job import metrics
from mxnet_provider.job.metrics import Metrics


@pytest.fixture
def gauges(monkeypatch):
    sent = []
    monkeypatch.setattr(metrics.Stats, "gauge", lambda name, value, tags=None: sent.append((name, value)))
    return sent


@pytest.fixture
def warnings():
    return []


def read(warnings, *lines):
    metrics = Metrics({"dag_id": "d", "task_id": "t"}, warnings.append)
    for line in lines:
        metrics.read(line)
    return metrics


@pytest.mark.parametrize("value", ["nan", "-nan", "inf", "-inf", "1e400", "1e20"])
def test_a_figure_that_diverges_is_null_from_then_on_and_told_once(gauges, warnings, value):
    lines = [
        f"Epoch[{epoch}] loss={each}" for epoch, each in ((3, value), (3, 0.5), (3, value), (4, value), (5, value))
    ]
    metrics = read(warnings, "Epoch[2] loss=0.5", *lines, "Epoch[6] acc=0.1")
    assert metrics.history() == {"loss": [[2, 0.5], [3, None], [4, None], [5, None]], "accuracy": [[6, 0.1]]}
    assert warnings == [f"loss is {float(value)} in epoch 3: the training has diverged."]
    assert all(math.isfinite(sent) for _, sent in gauges)
    assert [sent for name, sent in gauges if name == "mxnet_job.epoch"] == [2, 3, 3, 3, 4, 5, 6]


def test_figures_within_epochs_are_sent_and_kept_where_no_line_is_about_a_whole_one(gauges, warnings):
    lines = [f"[{epoch}/3][{batch}/9] Loss_D: {epoch}.{batch}" for epoch in (1, 2) for batch in (3, 6)]
    assert read(warnings, *lines).history() == {"Train-Loss_D": [[1, 1.6], [2, 2.6]]}
    assert [sent for sent in gauges if sent[0].count(".") == 1] == [
        ("mxnet_job.train_loss_d", 1.6),
        ("mxnet_job.epoch", 1),
    ]


def test_a_restart_drops_the_figures_of_the_epochs_that_are_trained_again(gauges, warnings):
    lines = [f"Epoch[{epoch}] loss=0.{epoch + 1}" for epoch in (0, 1, 2, 1)]
    assert read(warnings, *lines).history() == {"loss": [[0, 0.1], [1, 0.2]]}


def test_what_the_status_says_of_a_training_is_sent_once(gauges, warnings):
    metrics = read(warnings)
    stalled = [{"name": "worker-0", "seconds": 300, "place": "a.py:1"}, {"name": "worker-1"}]
    job = {"status": {"training": {"progressPercentage": 70, "estimatedRemainingSeconds": 9, "stalled": stalled}}}
    for each in ({}, job, job):
        metrics.status(each)
    assert [sent for sent in gauges if sent[0].count(".") == 1] == [
        ("mxnet_job.progress_percentage", 70),
        ("mxnet_job.estimated_remaining_seconds", 9),
        ("mxnet_job.slow_workers", 0),
        ("mxnet_job.stalled_workers", 1),
    ]


def test_a_name_of_any_length_is_no_figure(gauges, warnings):
    assert read(warnings, f"Epoch[0] {'x' * 101}=1", f"Epoch[0] {'y' * 100}=1").history() == {"y" * 100: [[0, 1.0]]}
