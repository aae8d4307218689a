"""Training metrics in the log lines of MXNet scripts, parsed line by line and gathered into curves.

`Module.fit` and the callbacks of `mx.callback` write them through the logging module, so any prefix may come first:
`Epoch[3] Validation-accuracy=0.98`, `Epoch[3] Time cost=9.1`, and the Speedometer's
`Epoch[3] Batch [0-20]<tab>Speed: 1234.56 samples/sec<tab>accuracy=0.95` (before MXNet 1.5 with one number of a batch).
"""

import math
import re
from typing import Any

import msgspec

_NAME = r"[A-Za-z][\w .-]{0,99}?"
_VALUE = r"[-+.\w]+"
_EPOCH_LINE = re.compile(rf"Epoch\[(?P<epoch>\d{{1,9}})\] (?P<name>{_NAME})=(?P<value>{_VALUE})\s*$")
_SPEED_LINE = re.compile(
    r"(?:Epoch|Iter)\[(?P<epoch>\d{1,9})\] Batch \[(?:\d{1,9}-)?(?P<batch>\d{1,9})\]"
    rf"\s+Speed: (?P<speed>{_VALUE}) samples/sec(?P<metrics>(?:\s+{_NAME}={_VALUE})*)\s*$"
)
_METRIC = re.compile(rf"\s+(?P<name>{_NAME})=(?P<value>{_VALUE})")


class EpochMetric(msgspec.Struct, frozen=True):
    """Metric of one epoch, as `mx.callback.LogValidationMetricsCallback` and `Module.fit` print it."""

    epoch: int
    name: str
    value: float

    @property
    def divergence(self) -> str:
        """Warning for users where the value isn't finite."""
        return f"{self.name} is {self.value} in epoch {self.epoch}: the training has diverged."


class BatchSpeed(msgspec.Struct, frozen=True):
    """Line of `mx.callback.Speedometer`: the speed of the last batches, and the metrics over them."""

    epoch: int
    batch: int
    samples_per_second: float
    metrics: dict[str, float] = {}


def parse_epoch_line(line: str) -> EpochMetric | None:
    """Return the metric that a log line reports, under any prefix of the logging module, or None."""
    found = _EPOCH_LINE.search(line)
    if found is None:
        return None
    value = _number(found["value"])
    return None if value is None else EpochMetric(int(found["epoch"]), found["name"], value)


def parse_speed_line(line: str) -> BatchSpeed | None:
    """Return the Speedometer's figures that a log line reports, under any prefix, or None."""
    found = _SPEED_LINE.search(line)
    if found is None:
        return None
    speed = _number(found["speed"])
    if speed is None:
        return None
    metrics = {each["name"]: _number(each["value"]) for each in _METRIC.finditer(found["metrics"])}
    known = {name: value for name, value in metrics.items() if value is not None}
    return BatchSpeed(int(found["epoch"]), int(found["batch"]), speed, known)


class TrainingLog:
    """Progress of a training, as far as its log shows: its position, and its figures epoch by epoch.

    A job that restarts writes some epochs again; the last word counts.
    """

    def __init__(self) -> None:
        self.last: EpochMetric | BatchSpeed | None = None
        """Newest line with figures."""
        self.diverged: dict[str, EpochMetric] = {}
        """First epoch of each figure that was not finite, in the order of the log."""
        self._figures: dict[int, dict[str, float]] = {}
        self._speeds: dict[int, list[float]] = {}

    def take(self, line: str) -> bool:
        """Read a line; return whether it had figures."""
        speed = parse_speed_line(line)
        if speed is not None:
            self._begin(speed.epoch)
            if math.isfinite(speed.samples_per_second):
                self._speeds[speed.epoch].append(speed.samples_per_second)
            self.last = speed
            return True
        metric = parse_epoch_line(line)
        if metric is not None:
            self._begin(metric.epoch)
            self._figures[metric.epoch][metric.name] = metric.value
            self.last = metric
            if not math.isfinite(metric.value):
                self.diverged.setdefault(metric.name, metric)
        return metric is not None

    def figures(self, epoch: int) -> dict[str, float]:
        """Return the figures of an epoch by their names in the log (`Validation-accuracy`); empty before its end."""
        return dict(self._figures.get(epoch, {}))

    def samples_per_second(self, epoch: int) -> float | None:
        """Return the speed of an epoch, the mean over the Speedometer's lines of it."""
        speeds = self._speeds.get(epoch)
        return sum(speeds) / len(speeds) if speeds else None

    def history(self) -> dict[str, Any]:
        """Return the training as a script would report its result; empty where the log has no figures.

        A list per figure, with a value for each epoch from the first to the last and None where the log has none:
        `Validation-accuracy` as `validation_accuracy`, and `samples_per_second`. `accuracy` is the last one on
        validation data, if that is finite.
        """
        if not self._figures:
            return {}
        epochs = range(min(self._figures), max(self._figures) + 1)
        names = dict.fromkeys(name for epoch in epochs for name in self._figures.get(epoch, {}))
        series: dict[str, list[float | None]] = {
            re.sub(r"[ .-]", "_", name).lower(): [self._figures.get(epoch, {}).get(name) for epoch in epochs]
            for name in names
        }
        if self._speeds:
            series["samples_per_second"] = [_rounded(self.samples_per_second(epoch)) for epoch in epochs]
        validated = [value for value in series.get("validation_accuracy", ()) if value is not None]
        accuracy = {"accuracy": validated[-1]} if validated and math.isfinite(validated[-1]) else {}
        return {"epochs": epochs[-1] + 1, **accuracy, **series}

    def _begin(self, epoch: int) -> None:
        if self.last is not None and epoch < self.last.epoch:  # the job has restarted
            self._speeds = {known: speeds for known, speeds in self._speeds.items() if known < epoch}
            self._figures = {known: figures for known, figures in self._figures.items() if known < epoch}
            self.diverged = {name: first for name, first in self.diverged.items() if first.epoch < epoch}
        self._figures.setdefault(epoch, {})
        self._speeds.setdefault(epoch, [])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
