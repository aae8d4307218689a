"""What an integration decides about a job: the hooks that `plan` calls, in the order in which it calls them.

An integration is another system on the cluster: a queue, a gang scheduler, a workflow engine. `plan` knows none of
them by name.
"""

from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Action, CreatePod, Effects, Event, Reads, Success, Teardown
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.state import Admission, JobState


class Unplaced(msgspec.Struct, frozen=True):
    """Why a whole job gets no node, where its pods don't say so."""

    reason: str
    beginning: str
    """Part of the message that counts: with another, the condition changes."""
    words: str = ""


class IntegrationPolicy:
    """Decisions of an integration; each method decides nothing by default."""

    def admission(self, job: MXJob, observed: Observed) -> Admission | None:
        """Return whether a job with defaults may have pods; None for no opinion."""

    def follow_parent(self, state: JobState) -> Effects:
        """End a job that is to end with something else (`is_final`), or return when to check on that again."""
        return Effects()

    def unplaced(self, state: JobState) -> Unplaced | None:
        """Return why no pod of the job gets a node, where the scheduler says nothing on the pods themselves."""

    def waiting(self, state: JobState, *, has_pods: bool) -> Effects:
        """Return the effects for a job that waits or is suspended."""
        return Effects()

    def end(self, state: JobState) -> Success | Teardown | Reads | Effects:
        """End an attempt of which nothing has failed, or the whole job."""
        return Effects()

    def notices(self, state: JobState) -> Iterator[Event]:
        """Yield the Warnings about a manifest, which are posted once."""
        return iter(())

    def running(self, state: JobState) -> Effects:
        """Return the effects for a job that may run."""
        return Effects()

    def creations(self, state: JobState, pods: tuple[CreatePod, ...]) -> tuple[CreatePod, ...]:
        """Return the pods to create, with what the integration adds to each."""
        return pods

    def finished(self, job: MXJob, observed: Observed, now: datetime) -> tuple[Action, ...]:
        """Return the actions for a job that is over."""
        return ()


def fold(state: JobState, ask: Callable[[IntegrationPolicy], Effects]) -> Effects:
    """Return the effects of all integrations together, or those of the first that decides alone."""
    folded = Effects()
    for each in state.integrations:
        answer = ask(each)
        if answer.is_final:
            return answer
        folded += answer
    return folded
