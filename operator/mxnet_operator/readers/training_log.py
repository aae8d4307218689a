"""Progress of a training, gathered from the lines of its log: position, figures, time left, and what is wrong."""

import itertools
import math
import re
import statistics
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from mxnet_operator.api.storable import storable
from mxnet_operator.api.types import Metric, SlowWorker, StalledWorker, TrainingStatus
from mxnet_operator.readers.durations import short
from mxnet_operator.readers.log_figures import (
    EPOCH,
    ROLES,
    SPEED,
    TIME_COST,
    UNITS,
    Figures,
    epoch_alone,
    rank_in,
    read_line,
)
from mxnet_operator.readers.worker_logs import slow_text, stall_in

_EPOCHS_OPTION: Final = re.compile(r"(?:^|\s)--(?:(?:num|nb|n|max|total)[-_]?)?epochs?[\s=]+(\d{1,9})(?=[\s'\";]|$)")
_FLAT_EPOCHS: Final = 5
_FLAT_RANGE: Final = 0.02
_FLAT_BELOW: Final = 0.5
_STACK: Final = ('  File "', "    ")
"""Beginnings of the lines of a Python stack."""
_MOST_FRAMES: Final = 60
_MOST_NAMES: Final = 50
_MOST_METRICS: Final = 32
_LONGEST_NAME: Final = 64
_MOST_WARNINGS: Final = 10
_MOST_POINTS: Final = 1000
"""Maximum number of values of a figure in a history, and half of what is kept of one."""


class TrainingWarning(msgspec.Struct, frozen=True):
    """Sentence for users about a figure, and the epoch that gave rise to it."""

    epoch: int
    text: str


def epochs_asked_for(container: Mapping[str, Any]) -> int | None:
    """Return the number of epochs that a container's command asks for, as by `--num-epochs 10`; else None."""
    found = _EPOCHS_OPTION.findall(" ".join([*(container.get("command") or ()), *(container.get("args") or ())]))
    return int(found[-1]) if found else None


class _Course:
    """Figures by epoch, checkpoint, episode or iteration: a script that logs two of them has a course of each."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.whole: dict[int, dict[str, float]] = {}
        """Figures of lines about whole epochs."""
        self.within: dict[int, dict[str, float]] = {}
        """Newest figures of lines within an epoch, all of them of the training data."""
        self.speeds: dict[int, list[float]] = {}
        self._told: set[str] = set()
        """Figures that lines about whole epochs have."""
        self._names: set[str] = set()

    def end(self, number: int, values: Mapping[str, float]) -> None:
        """Take the figures of a line about a whole epoch."""
        self.whole[number].update(self._kept(values))
        self._told.update(map(_train_name, values))

    def go_on(self, number: int, values: Mapping[str, float]) -> None:
        """Take the figures of a line within an epoch."""
        self.within[number].update(self._kept(values))

    def _kept(self, values: Mapping[str, float]) -> dict[str, float]:
        for name in values:
            if len(self._names) < _MOST_NAMES:
                self._names.add(name)
        return {name: value for name, value in values.items() if name in self._names}

    def begin(self, number: int) -> bool:
        """Go to an epoch; return whether it is an earlier one, as after a restart: the later ones are dropped then."""
        is_earlier = self.last is not None and number < self.last
        if is_earlier:
            self.whole = {known: figures for known, figures in self.whole.items() if known < number}
            self.within = {known: figures for known, figures in self.within.items() if known < number}
            self.speeds = {known: speeds for known, speeds in self.speeds.items() if known < number}
        if len(self.whole) > 2 * _MOST_POINTS:
            for each in list(self.whole)[1::2]:
                for figures in (self.whole, self.within, self.speeds):
                    figures.pop(each, None)
        self.last = number
        self.whole.setdefault(number, {})
        self.within.setdefault(number, {})
        self.speeds.setdefault(number, [])
        return is_earlier

    def names(self) -> list[str]:
        """Return the names of all figures, in the order of the log."""
        return list(dict.fromkeys(name for number in self.whole for name in self.figures(number)))

    def figures(self, number: int) -> dict[str, float]:
        """Return the figures of an epoch; where no line about whole epochs has one, its newest value within it."""
        own = {_train_name(name): value for name, value in self.within.get(number, {}).items()}
        told = self.whole.get(number, {})
        return {**told, **{name: value for name, value in own.items() if name not in self._told}}


def _train_name(name: str) -> str:
    """Return the name of a figure of the training data: `Train-accuracy` also where a line says `accuracy`."""
    return name if name.partition("-")[0] in ROLES.values() or name in {SPEED, TIME_COST} else f"Train-{name}"


class TrainingLog:
    """Progress of a training, as far as its log shows: its position, and its figures epoch by epoch.

    A job that restarts writes some epochs again; the last word counts.

    Args:
        clock: Seconds, monotonic, at which the current line was written; by default only what scripts log is known.
    """

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self.last: Figures | None = None
        """Newest line with figures."""
        self.epochs_wanted: int | None = None
        """Number of epochs that the training is to have, where somebody has said."""
        self.stall = ""
        """Where the worker stands still, if its newest line says so; where all workers do, once they were compared."""
        self.stack: list[str] = []
        """Python stack with which the worker's newest line says that it stands still."""
        self.stalled: tuple[StalledWorker, ...] = ()
        """Where each worker stands, once they were compared and one stands still."""
        self.slow_workers: tuple[SlowWorker, ...] = ()
        """Which workers are slower than the others, once they were compared."""
        self.first_epoch: int | None = None
        """Lowest epoch that is known: from 1 on, many scripts count, from 0 on MXNet."""
        self.rank: int | None = None
        """Rank of the worker, where its log tells."""
        self._courses: dict[str, _Course] = {}
        self._warnings: dict[str, TrainingWarning] = {}
        self._told: set[str] = set()
        """Texts that `new_warnings` has returned."""
        self._begun: dict[int, float] = {}
        """Times at which the first lines of epochs came."""
        self._frames: list[str] = []
        self._alone: int | None = None
        """Epoch that the newest line without figures named."""

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the figures, and with workers: each said once, in the order of the log."""
        return [*(each.text for each in self._warnings.values()), *filter(None, [self.slow])]

    @property
    def slow(self) -> str:
        return slow_text(self.slow_workers)

    @property
    def unit(self) -> str:
        """What the figures are numbered by: epochs, if any line about a whole one has figures."""
        units = [unit for unit in UNITS if unit in self._courses]
        return next((unit for unit in units if any(self._courses[unit].whole.values())), units[0] if units else EPOCH)

    @property
    def position(self) -> int | None:
        """Newest epoch, or what `unit` says; None before the first."""
        course = self._courses.get(self.unit)
        return course.last if course else None

    def where(self) -> str:
        """Return the position in words: `epoch 7 of 10, about 3m7s left`; where it stands still; empty before both."""
        if self.stall or self.last is None:
            return self.stall
        return ", ".join(filter(None, [self.of_all(self.last.number, self.last.unit), self.time_left()]))

    def of_all(self, epoch: int, unit: str = EPOCH) -> str:
        """Return the epoch in words: `epoch 7 of 10`; without the second number where it isn't known."""
        return f"{unit} {epoch}" + (f" of {self.epochs_wanted}" if self.epochs_wanted and unit == EPOCH else "")

    def time_left(self) -> str:
        """Return `about 3m7s left`; empty where it isn't known."""
        left = self.seconds_left()
        return "" if left is None else f"about {short(left)} left"

    def summary(self) -> list[str]:
        """Return the position and the warnings, as far as there are any."""
        return [each for each in (self.where(), *self.warnings) if each]

    def status(self) -> TrainingStatus:
        """Return what the log says as `status.training` has it, without the time of the reading."""
        course, epochs, left = self._courses.get(EPOCH), self.epochs_wanted, self.seconds_left()
        ended = self.epochs_ended()
        newest = {_key(name): list(values.values())[-1] for name, values in self.courses().items()}
        if course is not None and (speeds := next(filter(None, reversed(course.speeds.values())), None)):
            newest["samples_per_second"] = sum(speeds) / len(speeds)
        return TrainingStatus(
            epoch=course.last if course else None,
            epochs=epochs,
            progress_percentage=None if ended is None or not epochs else max(0, min(100 * ended // epochs, 100)),
            estimated_remaining_seconds=None if left is None else min(round(left), 2**31 - 1),
            metrics=tuple(
                Metric(name=name[:_LONGEST_NAME], value=f"{value:.6g}")
                for name, value in list(newest.items())[:_MOST_METRICS]
            ),
            warnings=tuple(each.text for each in self._warnings.values())[:_MOST_WARNINGS],
            slow_workers=self.slow_workers,
            stalled=self.stalled,
        )

    def epochs_ended(self) -> int | None:
        """Return how many epochs have ended; None where that isn't known."""
        course = self._courses.get(EPOCH)
        if course is None or course.last is None:
            return None
        is_over = self.last is not None and self.last.unit == EPOCH and self.last.batch is None
        return course.last - (1 if self.first_epoch == 1 else 0) + is_over

    def seconds_left(self) -> float | None:
        """Return the mean time of an epoch for each one that is to come or under way; None where that isn't known.

        Scripts log the time of the training alone, without validation and checkpoints; a clock may see a log that was
        written before. So the longer time counts.
        """
        ended = self.epochs_ended()
        if ended is None or self.epochs_wanted is None:
            return None
        costs = [figures[TIME_COST] for figures in self._courses[EPOCH].whole.values() if TIME_COST in figures]
        logged = sum(costs) / len(costs) if costs else 0.0
        epochs, times = list(self._begun), list(self._begun.values())
        timed = (times[-1] - times[0]) / (epochs[-1] - epochs[0]) if len(epochs) > 1 else 0.0
        left = (self.epochs_wanted - ended) * max(logged, timed)
        return left if 1 <= left < math.inf else None

    def take(self, line: str) -> bool:
        """Read a line; return whether it had figures."""
        self.stall, self.stalled = stall_in(line), ()
        self.stack = self._frames if self.stall else []
        self._frames = [*self._frames, line.rstrip()][-_MOST_FRAMES:] if line.startswith(_STACK) else []
        self.rank = rank_in(line) if self.rank is None else self.rank
        found = read_line(line, self._alone)
        if found is None:
            if alone := epoch_alone(line):
                self._alone, of = alone
                self.epochs_wanted = of or self.epochs_wanted
            return False
        epochs = self._courses.get(EPOCH)
        if found.unit == "iteration" and epochs is not None and epochs.last == found.number:
            found = msgspec.structs.replace(found, unit=EPOCH)  # Other lines of the script name it an epoch.
        if found.unit == EPOCH and found.of is not None:
            self.epochs_wanted = found.of
        self._begin(found)
        course, number = self._courses[found.unit], found.number
        values = {name: value for name, value in found.values.items() if name != SPEED}
        speed = found.values.get(SPEED)
        if speed is not None and math.isfinite(speed):
            course.speeds[number].append(speed)
        self.last = found
        if found.batch is not None:
            values.pop(TIME_COST, None)
            course.go_on(number, values)
            return True
        course.end(number, values)
        for name, value in values.items():
            self._warn(course, number, name, value)
        return True

    def new_warnings(self, line: str) -> list[str]:
        """Read a line; return the warnings that it gives rise to, each text once."""
        self.take(line)
        new = [each for each in self.warnings if each not in self._told]
        self._told.update(new)
        return new

    def _warn(self, course: _Course, number: int, name: str, value: float) -> None:
        diverged, flat = f"{name} diverged", f"{name} flat"
        if storable(value) is None:
            unit = next(unit for unit, each in self._courses.items() if each is course)
            text = f"{name} is {value} in {unit} {number}: the training has diverged."
            self._warnings.setdefault(diverged, TrainingWarning(number, text))
            return
        self._warnings.pop(diverged, None)
        if name.endswith("accuracy"):
            values = [figures[name] for figures in map(course.figures, course.whole) if name in figures]
            low, high = min(values, default=0.0), max(values, default=0.0)
            if len(values) >= _FLAT_EPOCHS and high < _FLAT_BELOW and high - low < _FLAT_RANGE:
                text = (
                    f"{name} has stayed at {low:.3g} to {high:.3g} for {len(values)} epochs: the model does not"
                    " learn so far. Check the learning rate and the labels."
                )
                self._warnings.setdefault(flat, TrainingWarning(number, text))
            else:
                self._warnings.pop(flat, None)

    def figures(self, epoch: int) -> dict[str, float]:
        """Return the figures of an epoch by their names in the log (`Validation-accuracy`); empty before its end."""
        course = self._courses.get(self.unit)
        return course.figures(epoch) if course else {}

    def courses(self) -> dict[str, dict[int, float]]:
        """Return the value of each figure by epoch, or by what `unit` says."""
        course = self._courses.get(self.unit, _Course())
        by_epoch = {number: course.figures(number) for number in sorted(course.whole)}
        return {
            name: {number: figures[name] for number, figures in by_epoch.items() if name in figures}
            for name in course.names()
        }

    def newest(self, metric: str) -> tuple[int, float] | None:
        """Return the newest epoch that has ended with a metric, by its name in `status`, and the metric's value."""
        is_over = self.last is not None and self.last.unit == EPOCH and self.last.batch is None
        values = next((values for name, values in self.courses().items() if _key(name) == metric), {})
        ended = [each for each in values.items() if is_over or each[0] != self.position]
        return ended[-1] if ended and self.unit == EPOCH else None

    def reported(self, first: int) -> list[str]:
        """Return the names in `status` of the figures of whole epochs, from an epoch on and before the newest one."""
        course = self._courses.get(EPOCH, _Course())
        ended = (each for number, each in course.whole.items() if first <= number < (course.last or 0))
        return list(dict.fromkeys(_key(name) for figures in ended for name in figures if name != TIME_COST))

    def samples_per_second(self, epoch: int) -> float | None:
        """Return the speed of an epoch, the mean over the Speedometer's lines of it."""
        return self._mean_speed(self._courses.get(EPOCH), epoch)

    def usual_speed(self) -> float | None:
        """Return the median of the newest ten speeds; None where there are fewer than three, which says little."""
        course = self._courses.get(EPOCH, _Course())
        speeds = [speed for speeds in course.speeds.values() for speed in speeds][-10:]
        return statistics.median(speeds) if len(speeds) > 2 else None

    def history(self) -> dict[str, Any]:
        """Return the training as a script would report its result; empty where the log has no figures.

        A list per figure, with a value for each epoch from the first to the last and None where the log has none:
        `Validation-accuracy` as `validation_accuracy`, and `samples_per_second`. `accuracy` is the last one on
        validation data, or on test data where a script has only these, if it is finite. Long histories are thinned:
        with `every: n`, lists have each n-th value, counted back from the last. `unit` is there if it isn't `epoch`.
        """
        courses = self.courses()
        course = self._courses.get(self.unit)
        if not course or not course.whole:
            return {}
        numbers = sorted(course.whole)
        step = math.gcd(*(later - earlier for earlier, later in itertools.pairwise(numbers))) or 1
        every = step * math.ceil((numbers[-1] - numbers[0] + 1) / step / _MOST_POINTS)
        points = range(numbers[-1], numbers[0] - 1, -every)[::-1]
        series = {_key(name): [values.get(point) for point in points] for name, values in courses.items()}
        if any(course.speeds.values()):
            speeds = (self._mean_speed(course, point) for point in points)
            series["samples_per_second"] = [None if speed is None else round(speed, 2) for speed in speeds]
        held_out = series.get("validation_accuracy") or series.get("test_accuracy") or []
        validated = [value for value in held_out if value is not None]
        accuracy = {"accuracy": validated[-1]} if validated and math.isfinite(validated[-1]) else {}
        # A log that begins with epoch 1 counts from 1, more often than it is of a training resumed after its first.
        last = points[-1] + (every == 1 and points[0] != 1)
        how = {"every": every} if every > 1 else {}
        unit = {"unit": self.unit} if self.unit != EPOCH else {}
        return {"epochs": last, **how, **unit, **accuracy, **series}

    @staticmethod
    def _mean_speed(course: _Course | None, number: int) -> float | None:
        speeds = course.speeds.get(number) if course else None
        return sum(speeds) / len(speeds) if speeds else None

    def _begin(self, found: Figures) -> None:
        course, number = self._courses.setdefault(found.unit, _Course()), found.number
        before = course.last
        if before is not None and before < number:  # What lines within the epoch said last is its figure.
            for name, value in course.figures(before).items():
                if name not in course.whole[before]:
                    self._warn(course, before, name, value)
        if course.begin(number):  # the job has restarted
            self._warnings = {key: each for key, each in self._warnings.items() if each.epoch < number}
            self._begun = {}
        if found.unit == EPOCH:
            self.first_epoch = number if self.first_epoch is None else min(self.first_epoch, number)
            self._begun.setdefault(number, self._clock())


def _key(name: str) -> str:
    """Return the name of a figure in a history: `validation_accuracy` of `Validation-accuracy`."""
    return re.sub(r"[ ./@-]", "_", name).lower()
