"""MXNet's epoch lines."""

import pytest

from mxnet_operator.api.metrics import EpochMetric, parse_epoch_line


@pytest.mark.parametrize(
    ("line", "metric"),
    [
        ("Epoch[3] Validation-accuracy=0.98", EpochMetric(3, "Validation-accuracy", 0.98)),
        ("INFO:root:Epoch[0] Train-accuracy=0.363281", EpochMetric(0, "Train-accuracy", 0.363281)),
        ("Epoch[12] Time cost=190.507\n", EpochMetric(12, "Time cost", 190.507)),
        ("Epoch[1] Validation-top_k_accuracy_5=1e-3", EpochMetric(1, "Validation-top_k_accuracy_5", 0.001)),
        ("INFO:root:Epoch[0] Batch [20]	Speed: 84.39 samples/sec	accuracy=0.159970", None),
        ("Epoch[3] Validation-accuracy=", None),
        ("Epoch[x] Validation-accuracy=0.9", None),
        ("Epoch[3] Validation-accuracy=high", None),
        ("", None),
    ],
)
def test_a_line_is_read_as_epoch_name_and_value(line: str, metric: EpochMetric | None) -> None:
    assert parse_epoch_line(line) == metric
