"""Data of a report: a job, its replicas, and the history of its training or tuning."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from mxnet_operator.readers.log_figures import EPOCH, UNITS
from mxnet_operator.readers.pods import Outcome


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One pod of the job; a time is None until it is reached."""

    pod: str
    type: str
    index: int
    rank: int | None = None
    """Rank of a worker, where its log tells; it is not the index."""
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int | None = None
    recorded: Outcome | None = msgspec.field(default=None, name="outcome")
    """Outcome as its pod showed it; None in what was written before it was recorded."""
    state: str = ""
    """State of an unfinished replica, in the words of its pod: `running`, `ImagePullBackOff`."""

    @property
    def label(self) -> str:
        """Short name, such as `worker-0`."""
        return f"{self.type.lower()}-{self.index}"

    @property
    def outcome(self) -> Outcome:
        if self.recorded is not None:
            return self.recorded
        if self.exit_code is None:
            return "unfinished"
        return "failed" if self.exit_code else "succeeded"

    @property
    def seconds(self) -> float | None:
        """Seconds from its container's start to its end; None while unknown."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class Tuning(msgspec.Struct, frozen=True):
    """Result of a tuning: milliseconds per run before and after, and of each trial.

    `trials_on` has for each trial the position of the server in `servers`, which counts the trials of each.
    """

    untuned_ms: Annotated[float, Meta(gt=0)]
    tuned_ms: Annotated[float, Meta(gt=0)]
    trials_ms: Annotated[tuple[Annotated[float, Meta(gt=0)], ...], Meta(min_length=1)]
    servers: dict[str, int] = {}
    trials_on: tuple[int, ...] = ()
    error: float | None = None
    """Largest relative error of the tuned program's result."""

    @property
    def gain(self) -> float:
        """Speed-up: the untuned time divided by the tuned one."""
        return self.untuned_ms / self.tuned_ms


class Attempt(msgspec.Struct, frozen=True):
    """Attempt of a job that ended in a restart."""

    ended_at: datetime
    message: str


class Program(msgspec.Struct, frozen=True):
    type: str
    image: str
    command: str = ""
    versions: str = ""
    """Versions in the image, or the digest of the image that ran."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an MXJob, as `MXNetJobOperator` returns it (and as JSON keeps it).

    `result` is what the script reported. A mapping with `validation_accuracy` and `train_accuracy` (lists of shares
    from 0 to 1, one for each epoch) or `samples_per_second` is drawn as a curve, and one with the fields of `Tuning` as
    its trials; anything else is not.
    """

    name: str
    namespace: str
    uid: str
    state: str
    started_at: datetime | None = None
    completed_at: datetime | None = None
    duration_s: float | None = None
    read_at: datetime | None = None
    """Time at which an unfinished job was read; None for one that has finished."""
    message: str = ""
    replicas: tuple[Replica, ...] = ()
    result: Any = None
    files: tuple[str, ...] | None = None
    """Where what the job wrote is, a line each; None in what was written before it was recorded."""
    restarts: int | None = None
    attempts: tuple[Attempt, ...] = ()
    """Attempts that ended in a restart, oldest first, as far as their events still exist."""
    programs: tuple[Program, ...] = ()
    slow: str = ""
    """Sentence about workers that were slower than the others."""
    from_log: Collection[str] = ()
    """Figures of the result that come from the log: there, None is an epoch without a figure, and NaN is NaN."""

    @property
    def accuracy(self) -> float | None:
        """Final accuracy that the script reported, from 0 to 1."""
        value: Any = self._result.get("accuracy")
        return float(value) if _is_number(value) and math.isfinite(value) else None

    @property
    def tuning(self) -> Tuning | None:
        try:
            return msgspec.convert(self.result, Tuning)
        except msgspec.ValidationError:
            return None

    @property
    def epochs(self) -> int | None:
        epochs = self._result.get("epochs")
        return epochs if isinstance(epochs, int) else None

    @property
    def unit(self) -> str:
        """What the histories count: epochs, or checkpoints, episodes or iterations where the log numbers only these."""
        unit = self._result.get("unit")
        return unit if isinstance(unit, str) and unit in UNITS else EPOCH

    def history(self, name: str) -> tuple[tuple[int, float], ...]:
        """Return a figure's history as (epochs trained, value); empty where the script did not report it.

        A script may thin a long history: with `every: n` it kept each n-th value, counted back from the last.
        """
        return tuple((epoch, value) for epoch, value in self._course(name) if math.isfinite(value))

    def diverged(self, name: str) -> tuple[int, ...]:
        """List the epochs after which a figure was not a finite number: NaN, or null in JSON."""
        return tuple(epoch for epoch, value in self._course(name) if not math.isfinite(value))

    def _course(self, name: str) -> list[tuple[int, float]]:
        values = self._result.get(name)
        if not isinstance(values, Sequence) or isinstance(values, str):
            return []
        every = self._result.get("every")
        step = every if isinstance(every, int) and every > 0 else 1
        last = self.epochs if self.epochs is not None else len(values) * step
        return [
            (last - (len(values) - 1 - i) * step, math.nan if value is None else float(value))
            for i, value in enumerate(values)
            if _is_number(value) or (value is None and name not in self.from_log)
        ]

    @property
    def _result(self) -> Mapping[str, Any]:
        return self.result if isinstance(self.result, Mapping) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
