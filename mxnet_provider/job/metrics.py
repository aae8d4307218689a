"""Figures that training scripts print, epoch by epoch: kept for the XCom `metrics`, and sent as Airflow's gauges."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from airflow.providers.common.compat.sdk import Stats

from mxnet_operator.api.storable import storable
from mxnet_operator.api.types import TrainingStatus
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.training_status import training_of

_MOST_EPOCHS: Final = 1000

History = dict[str, list[list[int | float | None]]]
"""The course of each figure: `[[epoch, value], ...]`, ascending; None where the value can't be stored, as NaN."""


class Metrics:
    """Figures of a job's progress that its log has reported so far.

    Of an epoch that is reported again, after a restart from a checkpoint, the last value counts. At most 50 figures
    are kept, and of each the last 1000 epochs: an XCom is a row of Airflow's database.

    `tags` of the gauges are `dag_id` and `task_id`. `warn` is called once with each text about a figure that is no
    number any more, or shows that the model doesn't learn.
    """

    def __init__(self, tags: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self._tags = dict(tags)
        self._warn = warn
        self._log = TrainingLog()
        self._training: TrainingStatus | None = None

    def status(self, job: Mapping[str, Any]) -> None:
        """Send what the job's status says of the training, where it is new."""
        training = training_of(job)
        if training is None or training == self._training:
            return
        self._training = training
        gauges = {
            "progress_percentage": training.progress_percentage,
            "estimated_remaining_seconds": training.estimated_remaining_seconds,
            "slow_workers": len(training.slow_workers),
            "stalled_workers": sum(bool(worker.place) for worker in training.stalled),
        }
        for name, value in gauges.items():
            if value is not None:
                self._send(name, value)

    def read(self, line: str) -> None:
        """Take the figures from a log line, if it reports any; send those of an epoch, once a line has them."""
        before = self._log.last
        for warning in self._log.new_warnings(line):
            self._warn(warning)
        last = self._log.last
        if last is None or last is before:
            return
        if last.batch is None:
            self._send_all(last.number, last.values)
        elif before is not None and before.batch is not None and before.number < last.number:
            # No line is about the whole epoch: what the last one within it said is its figure.
            self._send_all(before.number, self._log.figures(before.number))

    def history(self) -> History:
        return {
            name: [[epoch, storable(value)] for epoch, value in list(course.items())[-_MOST_EPOCHS:]]
            for name, course in self._log.courses().items()
        }

    def _send_all(self, epoch: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            if storable(value) is not None:
                self._send(name, value)
            self._send("epoch", epoch)

    def _send(self, name: str, value: float) -> None:
        """Send a gauge by a name with tags, as Airflow does, and for StatsD without tags by one with its owner."""
        slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        Stats.gauge(f"mxnet_job.{slug}", value, tags=self._tags)
        own = ".".join(self._tags.get(tag, "") for tag in ("dag_id", "task_id"))
        Stats.gauge(f"mxnet_job.{own}.{slug}", value)
