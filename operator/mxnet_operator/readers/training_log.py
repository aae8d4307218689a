"""Training metrics in the log lines of MXNet scripts, parsed line by line and gathered into curves.

`Module.fit` and the callbacks of `mx.callback` write `Epoch[3] Validation-accuracy=0.98`. Gluon scripts print lines of
their own: `[Epoch 3] Validation: accuracy=0.75`, `epoch 3, loss 0.4, test acc 0.9, time 8.1 sec`. Any prefix may come
first. What all spellings share is read: an epoch, and after it pairs of a name and a number.
"""

import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from mxnet_operator.api.storable import storable
from mxnet_operator.readers.durations import short
from mxnet_operator.readers.worker_logs import stall_in

TIME_COST: Final = "Time cost"
"""Name of the seconds that an epoch took, however a script spells it."""
SPEED: Final = "Speed"
"""Name of the samples per second, however a script spells them."""

_ROLES: Final = {
    **dict.fromkeys(("training", "train"), "Train"),
    **dict.fromkeys(("validation", "valid", "val", "evaluation", "eval", "dev"), "Validation"),
    **dict.fromkeys(("testing", "test"), "Test"),
}
_ROLE: Final = "|".join(_ROLES)
_NUMBER: Final = r"[-+]?(?:\d{1,30}(?:\.\d{0,30})?(?:e[-+]?\d{1,3})?|\.\d{1,30}|nan|inf)"
_EPOCH: Final = re.compile(
    r"\[epoch[ :]?\s?(?P<a>\d{1,9})(?:/\d+)?\]|\bepoch\s?\[(?P<b>\d{1,9})(?:/\d+)?\]"
    r"|\bepoch\s?[:=#]?\s?(?P<c>\d{1,9})(?:/\d+)?(?![\w/]|\.\d)",
    re.IGNORECASE,
)
_BATCH: Final = re.compile(
    r"(?:\[epoch[ :]?\s?(?P<a>\d{1,9})(?:/\d+)?[\]\s,]{0,3}\[?|\b(?:epoch|iter)\s?\[(?P<b>\d{1,9})\],?\s?\[?"
    r"|\bepoch\s?[:=]?\s?(?P<c>\d{1,9})(?:/\d+)?,?\s\[?)"
    r"(?:batch|step|iter|iteration)\s?[:=]?\s?\[?(?:\d{1,9}-)?(?P<batch>\d{1,9})(?:/\d+)?\]{0,2}",
    re.IGNORECASE,
)
_RANK: Final = re.compile(r"\bNode\[(\d{1,5})\]")
"""The rank of a worker in the logging format of MXNet's own examples (`common/fit.py`)."""
_SAMPLES_SO_FAR: Final = re.compile(r"\[Samples \d+\]", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"[\s,;:.|()\[\]-]*")
_PAIR: Final = re.compile(
    r"(?P<name>[a-z][\w.@/-]{0,99}(?: [a-z][\w.@/-]{0,40}){0,4}?)(?P<sign>\s?[=:]\s?|\s)"
    rf"(?P<value>{_NUMBER})(?P<unit>\s?%|\s?(?:s|secs?|seconds)\b|\s?samples(?:/s(?:ec)?)?\b)?(?=[\s,;|)\].]|$)",
    re.IGNORECASE,
)
_RATE: Final = re.compile(rf"(?P<value>{_NUMBER})\s?samples/s(?:ec)?\b", re.IGNORECASE)
_ROLE_OF_LINE: Final = re.compile(rf"(?P<role>{_ROLE})\s?:\s*(?=[a-z])", re.IGNORECASE)
_ROLE_BEFORE: Final = re.compile(rf"\b(?P<role>{_ROLE})(?: acc| accuracy| loss)? (?:at|of) $", re.IGNORECASE)
_ROLE_OF_NAME: Final = re.compile(rf"(?P<role>{_ROLE})[\s_-]+(?P<measure>.+)", re.IGNORECASE)
_MEASURE: Final = re.compile(
    r"(?:^|[\s_./@-])(?:acc|\w*accuracy\d*|\w*loss\d*|l|cost|\w*error|err|err-top\d|top-?\d|ppl|perplexity|r?mse|mae|nll|ce"
    r"|\w*entropy\d*|f1|auc|map|m?iou|pixacc|bleu|recall|precision|score|reward|psnr|ssim|mcc|elbo|kl|bpc|[wc]er|hits?|ndcg"
    r"|speed|throughput)(?:[_@\d-]\w*)?$",
    re.IGNORECASE,
)
_SYNONYMS: Final = {"acc": "accuracy", "accuracy": "accuracy", "loss": "loss", "ppl": "perplexity"}
_TIMES: Final = frozenset(
    {"time", "time cost", "time used", "cost time", "in", "finished in", "training cost", "time/batch"}
)
"""What scripts call the seconds of an epoch; `training cost` is GluonCV's word for them."""
_SPEEDS: Final = frozenset({"speed", "throughput"})
_COUNTERS: Final = frozenset({"batch", "batches", "step", "steps", "iter", "iteration"})
_SETTINGS: Final = frozenset({"lr", "learning rate", "wd"})
_EPOCHS_OPTION: Final = re.compile(r"(?:^|\s)--(?:(?:num|nb|n|max|total)[-_]?)?epochs?[\s=]+(\d{1,9})(?=[\s'\";]|$)")
_OF_EPOCHS: Final = re.compile(r"epoch\D{0,3}\d{1,9}/(\d{1,9})", re.IGNORECASE)
_FLAT_EPOCHS: Final = 5
_FLAT_RANGE: Final = 0.02
_FLAT_BELOW: Final = 0.5
_LONGEST: Final = 1000
"""Characters of a line that are read after its epoch."""


class EpochMetric(msgspec.Struct, frozen=True):
    """Metric of one epoch, named as `Module.fit` would: `Validation-accuracy`, also where a script says `val_acc`."""

    epoch: int
    name: str
    value: float


class TrainingWarning(msgspec.Struct, frozen=True):
    """Sentence for users about a figure, and the epoch that gave rise to it."""

    epoch: int
    text: str


class BatchSpeed(msgspec.Struct, frozen=True):
    """Line within an epoch, such as the Speedometer's: the speed of the last batches, if it has one, and metrics."""

    epoch: int
    batch: int
    samples_per_second: float | None
    metrics: dict[str, float] = {}


def parse_epoch_line(line: str) -> tuple[EpochMetric, ...]:
    """Return the metrics of an epoch that a log line reports, under any prefix; empty if it reports none."""
    found = _EPOCH.search(line)
    if found is None or _BATCH.search(line):
        return ()
    before = _ROLE_BEFORE.search(line[: found.start()])
    role = _ROLES[before["role"].lower()] if before else ""
    pairs = list(_pairs(line[found.end() : found.end() + _LONGEST], role))
    if any(name in _COUNTERS for name, _ in pairs):
        return ()
    return tuple(EpochMetric(_epoch(found), name, value) for name, value in pairs if name not in _SETTINGS)


def epochs_asked_for(container: Mapping[str, Any]) -> int | None:
    """Return the number of epochs that a container's command asks for, as by `--num-epochs 10`; else None."""
    found = _EPOCHS_OPTION.findall(" ".join([*(container.get("command") or ()), *(container.get("args") or ())]))
    return int(found[-1]) if found else None


def rank_in(line: str) -> int | None:
    """Return the rank of the worker that wrote a line, where the line tells; it is not the worker's index."""
    found = _RANK.search(line)
    return int(found[1]) if found else None


def parse_speed_line(line: str) -> BatchSpeed | None:
    """Return the figures within an epoch that a log line reports, under any prefix, or None."""
    found = _BATCH.search(line)
    if found is None:
        return None
    rest = _SAMPLES_SO_FAR.sub("", line[found.end() : found.end() + _LONGEST])
    speed = _RATE.search(rest)
    metrics = {name: value for name, value in _pairs(rest) if name not in {*_COUNTERS, *_SETTINGS, SPEED, TIME_COST}}
    if speed is None and not metrics:
        return None
    return BatchSpeed(_epoch(found), int(found["batch"]), float(speed["value"]) if speed else None, metrics)


def _epoch(found: re.Match[str]) -> int:
    return int(found["a"] or found["b"] or found["c"])


def _pairs(text: str, role: str = "") -> Iterator[tuple[str, float]]:
    """Yield names and values from the beginning of what follows an epoch, up to words that are no such pair."""
    at = 0
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        if of_line := _ROLE_OF_LINE.match(text, at):
            role, at = _ROLES[of_line["role"].lower()], of_line.end()
        elif (pair := _PAIR.match(text, at)) and _is_figure(pair):
            at, value = pair.end(), float(pair["value"])
            yield _name(pair["name"], role), value / 100 if (pair["unit"] or "").strip() == "%" else value
        elif rate := _RATE.match(text, at):
            at = rate.end()
        else:
            return


def _is_figure(pair: re.Match[str]) -> bool:
    """Whether a pair is a figure: whatever has `=`, else a name that is known to measure something."""
    name = pair["name"].lower()
    return "=" in pair["sign"] or name in {*_TIMES, *_ROLES} or _MEASURE.search(name) is not None


def _name(given: str, role: str) -> str:
    lower = given.lower()
    if lower in _TIMES:
        return TIME_COST
    if lower in _SPEEDS:
        return SPEED
    if lower in _COUNTERS or lower in _SETTINGS:
        return lower
    if lower in _ROLES:
        return _ROLES[lower]
    if of_name := _ROLE_OF_NAME.fullmatch(given):
        role, given = _ROLES[of_name["role"].lower()], of_name["measure"]
    measure = _SYNONYMS.get(given.lower(), given)
    return f"{role}-{measure}" if role else measure


class TrainingLog:
    """Progress of a training, as far as its log shows: its position, and its figures epoch by epoch.

    A job that restarts writes some epochs again; the last word counts.

    Args:
        clock: Seconds, monotonic, at which the current line was written; by default only what scripts log is known.
    """

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self.last: EpochMetric | BatchSpeed | None = None
        """Newest line with figures."""
        self.epochs_wanted: int | None = None
        """Number of epochs that the training is to have, where somebody has said."""
        self.stall = ""
        """Where the worker stands still, if its newest line says so; where all workers do, once they were compared."""
        self.slow = ""
        """Which workers are slower than the others, once they were compared."""
        self.first_epoch: int | None = None
        """Lowest epoch that is known: from 1 on, many scripts count, from 0 on MXNet."""
        self.rank: int | None = None
        """Rank of the worker, where its log tells."""
        self._figures: dict[int, dict[str, float]] = {}
        self._speeds: dict[int, list[float]] = {}
        self._warnings: dict[str, TrainingWarning] = {}
        self._begun: dict[int, float] = {}
        """Times at which the first lines of epochs came."""

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the figures so far, each said once, in the order of the log."""
        return [*(each.text for each in self._warnings.values()), *filter(None, [self.slow])]

    def where(self) -> str:
        """Return the position in words: `epoch 7 of 10, about 3m7s left`; where it stands still; empty before both."""
        if self.stall or self.last is None:
            return self.stall
        return ", ".join(filter(None, [self.of_all(self.last.epoch), self.time_left()]))

    @property
    def epochs_ended(self) -> int:
        """Number of epochs that have ended, whether the script counts from 0 or from 1."""
        if self.last is None:
            return 0
        return self.last.epoch - (1 if self.first_epoch == 1 else 0) + isinstance(self.last, EpochMetric)

    def of_all(self, epoch: int) -> str:
        """Return the epoch in words: `epoch 7 of 10`; without the second number where it isn't known."""
        return f"epoch {epoch}" + ("" if self.epochs_wanted is None else f" of {self.epochs_wanted}")

    def time_left(self) -> str:
        """Return `about 3m7s left`; empty where it isn't known."""
        left = self._seconds_left()
        return "" if left is None else f"about {short(left)} left"

    def summary(self) -> list[str]:
        """Return the position and the warnings, as far as there are any."""
        return [each for each in (self.where(), *self.warnings) if each]

    def _seconds_left(self) -> float | None:
        """Return the mean time of an epoch for each one that is to come or under way; None where that isn't known.

        Scripts log the time of the training alone, without validation and checkpoints; a clock may see a log that was
        written before. So the longer time counts.
        """
        if self.last is None or self.epochs_wanted is None:
            return None
        costs = [figures[TIME_COST] for figures in self._figures.values() if TIME_COST in figures]
        logged = sum(costs) / len(costs) if costs else 0.0
        epochs, times = list(self._begun), list(self._begun.values())
        timed = (times[-1] - times[0]) / (epochs[-1] - epochs[0]) if len(epochs) > 1 else 0.0
        left = (self.epochs_wanted - self.epochs_ended) * max(logged, timed)
        return left if 1 <= left < math.inf else None

    def take(self, line: str) -> bool:
        """Read a line; return whether it had figures."""
        self.stall = stall_in(line)
        self.rank = rank_in(line) if self.rank is None else self.rank
        speed = parse_speed_line(line)
        metrics = parse_epoch_line(line) if speed is None else ()
        if (speed or metrics) and (of := _OF_EPOCHS.search(line)):
            self.epochs_wanted = int(of[1])
        if speed is not None:
            self._begin(speed.epoch)
            self._add_speed(speed.epoch, speed.samples_per_second)
            self.last = speed
            return True
        for metric in metrics:
            self._begin(metric.epoch)
            self.last = metric
            if metric.name == SPEED:
                self._add_speed(metric.epoch, metric.value)
                continue
            self._figures[metric.epoch][metric.name] = metric.value
            self._warn(metric)
        return bool(metrics)

    def new_warnings(self, line: str) -> list[str]:
        """Read a line; return the warnings that it gives rise to."""
        known = self.warnings
        self.take(line)
        return [each for each in self.warnings if each not in known]

    def _warn(self, metric: EpochMetric) -> None:
        name, epoch = metric.name, metric.epoch
        if storable(metric.value) is None:
            text = f"{name} is {metric.value} in epoch {epoch}: the training has diverged."
            self._warnings.setdefault(f"{name} diverged", TrainingWarning(epoch, text))
        elif name.endswith("accuracy"):
            values = [figures[name] for figures in self._figures.values() if name in figures]
            low, high = min(values), max(values)
            if len(values) >= _FLAT_EPOCHS and high < _FLAT_BELOW and high - low < _FLAT_RANGE:
                text = (
                    f"{name} has stayed at {low:.3g} to {high:.3g} for {len(values)} epochs: the model does not"
                    " learn so far. Check the learning rate and the labels."
                )
                self._warnings.setdefault(f"{name} flat", TrainingWarning(epoch, text))

    def figures(self, epoch: int) -> dict[str, float]:
        """Return the figures of an epoch by their names in the log (`Validation-accuracy`); empty before its end."""
        return dict(self._figures.get(epoch, {}))

    def samples_per_second(self, epoch: int) -> float | None:
        """Return the speed of an epoch, the mean over the Speedometer's lines of it."""
        speeds = self._speeds.get(epoch)
        return sum(speeds) / len(speeds) if speeds else None

    def usual_speed(self) -> float | None:
        """Return the median of the newest ten speeds; None where there are fewer than three, which says little."""
        speeds = [speed for epoch in self._speeds for speed in self._speeds[epoch]][-10:]
        return statistics.median(speeds) if len(speeds) > 2 else None

    def history(self) -> dict[str, Any]:
        """Return the training as a script would report its result; empty where the log has no figures.

        A list per figure, with a value for each epoch from the first to the last and None where the log has none:
        `Validation-accuracy` as `validation_accuracy`, and `samples_per_second`. `accuracy` is the last one on
        validation data, or on test data where a script has only these, if it is finite.
        """
        if not self._figures:
            return {}
        epochs = range(min(self._figures), max(self._figures) + 1)
        names = dict.fromkeys(name for epoch in epochs for name in self._figures.get(epoch, {}))
        series: dict[str, list[float | None]] = {
            re.sub(r"[ ./@-]", "_", name).lower(): [self._figures.get(epoch, {}).get(name) for epoch in epochs]
            for name in names
        }
        if self._speeds:
            series["samples_per_second"] = [_rounded(self.samples_per_second(epoch)) for epoch in epochs]
        held_out = series.get("validation_accuracy") or series.get("test_accuracy") or []
        validated = [value for value in held_out if value is not None]
        accuracy = {"accuracy": validated[-1]} if validated and math.isfinite(validated[-1]) else {}
        # A log that begins with epoch 1 counts from 1, more often than it is of a training resumed after its first.
        return {"epochs": epochs[-1] + (epochs[0] != 1), **accuracy, **series}

    def _add_speed(self, epoch: int, samples_per_second: float | None) -> None:
        if samples_per_second is not None and math.isfinite(samples_per_second):
            self._speeds[epoch].append(samples_per_second)

    def _begin(self, epoch: int) -> None:
        if self.last is not None and epoch < self.last.epoch:  # the job has restarted
            self._speeds = {known: speeds for known, speeds in self._speeds.items() if known < epoch}
            self._figures = {known: figures for known, figures in self._figures.items() if known < epoch}
            self._warnings = {key: each for key, each in self._warnings.items() if each.epoch < epoch}
            self._begun = {}
        self.first_epoch = epoch if self.first_epoch is None else min(self.first_epoch, epoch)
        self._begun.setdefault(epoch, self._clock())
        self._figures.setdefault(epoch, {})
        self._speeds.setdefault(epoch, [])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
