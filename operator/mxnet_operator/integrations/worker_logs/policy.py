"""What workers' logs say of a job: where the training is, and the condition Stalled while it stands still."""

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.plan.actions import Effects
from mxnet_operator.plan.integration import IntegrationPolicy
from mxnet_operator.plan.state import JobState


class LogView(msgspec.Struct, frozen=True):
    """Observation by the last lines of workers' logs."""

    stall: str = ""
    """Where the workers stand still: `stalled for 5m: ...`; empty: they don't."""
    progress: str = ""
    """Where the training is, and what is wrong with its figures; empty where the log has none."""


class WorkerLogsPolicy(IntegrationPolicy):
    """Reports of training; nothing is ended because of one: `runPolicy` has fields for that."""

    def running(self, state: JobState) -> Effects:
        """Return the progress and the condition of a job whose logs were read, and a Warning when a standstill begins.

        The progress is new with each epoch: the time that is left goes by without a write.
        """
        found = state.observed.fact(LogView)
        if found is None:
            return Effects()
        known = state.job.status.progress
        is_new = _without_time(found.progress) != _without_time(known)
        effects = Effects(progress=found.progress if is_new else None)
        if found.stall:
            return effects + state.warn(conditions.STALLED, conditions.REASON_NO_PROGRESS, found.stall)
        words = "The workers make progress again."
        return effects + state.no_longer(conditions.STALLED, conditions.REASON_PROGRESS, words)


def _without_time(progress: str) -> tuple[str, str]:
    position, _, warnings = progress.partition(". ")
    return position.partition(",")[0], warnings
