"""Labels by which a job asks Kueue for a place in a queue, and what is wrong with a time that Kueue can't take.

Kueue's webhooks reject such a value on the kinds that they know; MXJob is none of them, and elsewhere Kueue ignores it.
"""

from collections.abc import Mapping
from typing import Any, Final

from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.api.types import MXJob

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Label with the LocalQueue of Kueue in which a job waits until it is admitted."""
QUEUE_PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
"""Label with the WorkloadPriorityClass by which Kueue orders and preempts."""
QUEUE_TIME_LABEL: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""Label with the seconds for which Kueue lets a job run before it deactivates its Workload."""
_LARGEST: Final = 2**31 - 1
"""Maximum of maximumExecutionTimeSeconds of a Workload, an int32."""
_DIGITS: Final = 10


def queue_of(job: MXJob) -> str:
    return (job.metadata.labels or {}).get(QUEUE_LABEL, "")


def execution_seconds(labels: Mapping[str, str]) -> int | None:
    """Return the seconds for which Kueue lets a job with these labels run; None for no limit, or none that is valid."""
    text = labels.get(QUEUE_TIME_LABEL, "").lstrip("0")
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        return None
    return int(text) if int(text) <= _LARGEST else None


def execution_seconds_problem(labels: Mapping[str, str]) -> str:
    """Return what is wrong with the value of the label; empty if it is valid or missing."""
    if QUEUE_TIME_LABEL not in labels or execution_seconds(labels) is not None:
        return ""
    return f'"{labels[QUEUE_TIME_LABEL]}" is no whole number of seconds from 1 to {_LARGEST}'


def queue_label_errors(manifest: Any) -> list[FieldError]:
    """Return the errors in Kueue's labels of a valid manifest, which the API server accepts."""
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    if not isinstance(labels, dict) or not isinstance(labels.get(QUEUE_TIME_LABEL, ""), str):
        return []
    if not execution_seconds_problem(labels):
        return []
    detail = f"{QUEUE_TIME_LABEL} must be a whole number of seconds from 1 to {_LARGEST}"
    return [invalid("metadata.labels", labels[QUEUE_TIME_LABEL], detail)]
