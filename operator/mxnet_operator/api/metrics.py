"""The lines in which MXNet scripts report an epoch: `Epoch[3] Validation-accuracy=0.98`."""

import re

import msgspec

_EPOCH_LINE = re.compile(r"Epoch\[(?P<epoch>\d{1,9})\] (?P<name>[A-Za-z][\w .-]*?)=(?P<value>[-+.\w]+)\s*$")


class EpochMetric(msgspec.Struct, frozen=True):
    """One figure of one epoch, as `mx.callback.LogValidationMetricsCallback` and `Module.fit` print it."""

    epoch: int
    name: str
    value: float


def parse_epoch_line(line: str) -> EpochMetric | None:
    """The figure that a log line reports, under any prefix of the logging module, or None."""
    found = _EPOCH_LINE.search(line)
    if found is None:
        return None
    try:
        value = float(found["value"])
    except ValueError:
        return None
    return EpochMetric(int(found["epoch"]), found["name"], value)
