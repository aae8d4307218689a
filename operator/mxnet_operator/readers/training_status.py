"""`status.training` in words, the same wherever a training is shown."""

from collections.abc import Mapping
from typing import Any

import msgspec

from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.api.types import TrainingStatus
from mxnet_operator.readers.durations import short
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.waiting import waiting_reasons
from mxnet_operator.readers.worker_logs import slow_text, stall_text


def training_of(job: Mapping[str, Any]) -> TrainingStatus | None:
    found = (job.get("status") or {}).get("training")
    try:
        return msgspec.convert(found, TrainingStatus) if found else None
    except msgspec.ValidationError:
        return None


def status_summary(job: Mapping[str, Any]) -> list[str]:
    """Return what a job's status says of its training, in words; of an ended job, how far it was seen to be."""
    found = training_of(job)
    if found is None:
        return []
    return [each for each in (where(found), *found.warnings, slow_text(found.slow_workers)) if each]


def going_on(job: Mapping[str, Any], training: TrainingLog | None) -> list[str]:
    """Return why an unfinished job waits, else how far its training is: by its log, else by its status."""
    read = list(waiting_reasons(job)) or (training.summary() if training else [])
    return read or (status_summary(job) if job_state(job) == RUNNING else [])


def at_the_end(training: TrainingStatus | None) -> TrainingStatus | None:
    """Return what stays of a training when its job ends: how far it was seen to be, its figures and its warnings.

    The last reading may be two minutes old: no share and no time is left of it.
    """
    if training is None:
        return None
    return msgspec.structs.replace(
        training, progress_percentage=None, estimated_remaining_seconds=None, slow_workers=(), stalled=()
    )


def where(training: TrainingStatus) -> str:
    """Return the position in words: `epoch 7 of 10, about 3m7s left`; where it is stalled; empty before both."""
    if training.stalled:
        return stall_text(training.stalled)
    if training.epoch is None:
        return ""
    left = training.estimated_remaining_seconds
    of = "" if training.epochs is None else f" of {training.epochs}"
    return f"epoch {training.epoch}{of}" + ("" if left is None else f", about {short(left)} left")
