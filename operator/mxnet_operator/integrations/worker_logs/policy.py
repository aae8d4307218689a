"""What workers' logs say of a job: where the training is, and the condition Stalled while it stands still."""

from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import TrainingStatus
from mxnet_operator.plan.actions import Effects, Success
from mxnet_operator.plan.integration import IntegrationPolicy
from mxnet_operator.plan.state import JobState
from mxnet_operator.readers.worker_logs import stall_text

_ALL: Final = 100
"""Percent."""


class LogView(msgspec.Struct, frozen=True):
    """Observation by the last lines of workers' logs; None where no worker runs."""

    training: TrainingStatus | None = None
    judged: tuple[int, float] | None = None
    """Newest epoch that has ended with the metric of `earlyStopping`, and its value."""


class WorkerLogsPolicy(IntegrationPolicy):
    """Reports of training, and the end of a job whose `runPolicy.earlyStopping` asks for it."""

    def end(self, state: JobState) -> Success | Effects:
        """End a job whose metric is beyond a bound, or NaN; the status is stored with what was read."""
        found, rule = state.observed.fact(LogView), state.job.spec.run_policy.early_stopping
        if found is None or found.judged is None or rule is None or found.judged[0] < rule.start_epoch:
            return Effects()
        epoch, value = found.judged
        below = rule.below is not None and not value >= rule.below
        if not below and (rule.above is None or value <= rule.above):
            return Effects()
        message = (
            f"{names.KIND} {state.job.metadata.name} was stopped early: {rule.metric} is {value:.6g} in epoch {epoch}"
            f" (earlyStopping: {f'below {rule.below:g}' if below else f'above {rule.above:g}'})."
        )
        read = msgspec.structs.replace(found.training or TrainingStatus(), last_updated_time=state.now)
        return Success(conditions.REASON_EARLY_STOPPED, message, read)

    def running(self, state: JobState) -> Effects:
        """Return the training and the condition of a job whose logs were read, and a Warning when a standstill begins.

        A training is written with each new epoch, and when something is wrong, or isn't any more: the time that is
        left goes by without a write, and so do figures within an epoch.
        """
        found = state.observed.fact(LogView)
        if found is None:
            return Effects()
        known = state.job.status.training or TrainingStatus()
        read = found.training or TrainingStatus()
        if not read.metrics and read.epoch is None:  # A new leader has read nothing yet that says how far it is.
            read = msgspec.structs.replace(known, slow_workers=read.slow_workers, stalled=read.stalled)
        is_new = _news(read) != _news(known)
        effects = Effects(training=msgspec.structs.replace(read, last_updated_time=state.now) if is_new else None)
        if words := stall_text(read.stalled):
            return effects + state.warn(conditions.STALLED, conditions.REASON_NO_PROGRESS, words)
        words = "The workers make progress again."
        return effects + state.no_longer(conditions.STALLED, conditions.REASON_PROGRESS, words)


def _news(training: TrainingStatus) -> tuple[object, ...]:
    slow = [worker.name for worker in training.slow_workers]
    stalled = [(worker.name, worker.place, worker.function) for worker in training.stalled]
    metrics = training.metrics if training.epoch is None else ()
    is_over = training.progress_percentage == _ALL
    return training.epoch, training.epochs, is_over, metrics, training.warnings, slow, stalled
