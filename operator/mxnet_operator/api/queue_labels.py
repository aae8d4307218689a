"""Label by which Kueue limits how long a job runs: its value, and what is wrong with one that Kueue can't take.

Kueue's webhooks reject such a value on the kinds that they know; MXJob is none of them, and elsewhere Kueue ignores it.
"""

from collections.abc import Mapping
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.structural import FieldError, invalid

_LARGEST: Final = 2**31 - 1
"""Maximum of maximumExecutionTimeSeconds of a Workload, an int32."""
_DIGITS: Final = 10


def execution_seconds(labels: Mapping[str, str]) -> int | None:
    """Return the seconds for which Kueue lets a job with these labels run; None for no limit, or none that is valid."""
    text = labels.get(names.QUEUE_TIME_LABEL, "").lstrip("0")
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        return None
    return int(text) if int(text) <= _LARGEST else None


def execution_seconds_problem(labels: Mapping[str, str]) -> str:
    """Return what is wrong with the value of the label; empty if it is valid or missing."""
    if names.QUEUE_TIME_LABEL not in labels or execution_seconds(labels) is not None:
        return ""
    return f'"{labels[names.QUEUE_TIME_LABEL]}" is no whole number of seconds from 1 to {_LARGEST}'


def queue_label_errors(manifest: Any) -> list[FieldError]:
    """Return the errors in Kueue's labels of a valid manifest, which the API server accepts."""
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(labels, dict) or not isinstance(labels.get(names.QUEUE_TIME_LABEL, ""), str):
        return []
    if not execution_seconds_problem(labels):
        return []
    detail = f"{names.QUEUE_TIME_LABEL} must be a whole number of seconds from 1 to {_LARGEST}"
    return [invalid("metadata.labels", labels[names.QUEUE_TIME_LABEL], detail)]
