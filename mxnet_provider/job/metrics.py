"""Figures that training scripts print, epoch by epoch: kept for the XCom `metrics`, and sent as Airflow's gauges."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from airflow.providers.common.compat.sdk import Stats

from mxnet_operator.api.storable import storable
from mxnet_operator.readers.training_log import EpochMetric, TrainingLog, parse_epoch_line

_MOST_NAMES: Final = 50
_MOST_EPOCHS: Final = 1000

History = dict[str, list[list[int | float | None]]]
"""The course of each figure: `[[epoch, value], ...]`, ascending; None where the value can't be stored, as NaN."""


class Metrics:
    """Figures of a job's progress that its log has reported so far.

    Of an epoch that is reported again, after a restart from a checkpoint, the last value counts. At most 50 figures
    are kept, and of each the last 1000 epochs: an XCom is a row of Airflow's database.

    Args:
        tags: Tags of the gauges: `dag_id` and `task_id`.
        warn: Called with a text for each figure that is no number any more, or shows that the model doesn't learn.
    """

    def __init__(self, tags: Mapping[str, str], warn: Callable[[str], None]) -> None:
        self._tags = dict(tags)
        self._warn = warn
        self._values: dict[str, dict[int, float | None]] = {}
        self._log = TrainingLog()

    def read(self, line: str) -> None:
        """Take the figures from a log line, if it reports any."""
        metrics = parse_epoch_line(line)
        if not metrics:  # only figures of epochs are warned of
            return
        for metric in metrics:
            self._take(metric)
        for warning in self._log.new_warnings(line):
            self._warn(warning)

    def _take(self, metric: EpochMetric) -> None:
        if metric.name not in self._values and len(self._values) == _MOST_NAMES:
            return
        course = self._values.setdefault(metric.name, {})
        course[metric.epoch] = value = storable(metric.value)
        if len(course) > _MOST_EPOCHS:
            del course[min(course)]
        if value is not None:
            self._send(metric.name, value)
        self._send("epoch", metric.epoch)

    def history(self) -> History:
        """Return the courses of all figures, as JSON."""
        return {name: [[epoch, course[epoch]] for epoch in sorted(course)] for name, course in self._values.items()}

    def _send(self, name: str, value: float) -> None:
        """Send a gauge by a name with tags, as Airflow does, and for StatsD without tags by one with its owner."""
        slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        Stats.gauge(f"mxnet_job.{slug}", value, tags=self._tags)
        own = ".".join(self._tags.get(tag, "") for tag in ("dag_id", "task_id"))
        Stats.gauge(f"mxnet_job.{own}.{slug}", value)
