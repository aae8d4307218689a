"""Jobs whose workers stand still: the condition Stalled, as long as the last line of the first that runs says so."""

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.plan.actions import Effects
from mxnet_operator.plan.integration import IntegrationPolicy
from mxnet_operator.plan.state import JobState


class Standstill(msgspec.Struct, frozen=True):
    """Observation where the workers of a job stand still: `stalled for 5m: ...`; empty: they don't."""

    words: str


class StallPolicy(IntegrationPolicy):
    """Reports of a standstill; nothing is ended because of one: `runPolicy.stallTimeoutSeconds` does that."""

    def running(self, state: JobState) -> Effects:
        """Return the condition of a job whose logs were read, and a Warning when it begins to stand still."""
        found = state.observed.fact(Standstill)
        if found is None:
            return Effects()
        if not found.words:
            return state.no_longer(conditions.STALLED, conditions.REASON_PROGRESS, "The workers make progress again.")
        return state.warn(conditions.STALLED, conditions.REASON_NO_PROGRESS, found.words)
