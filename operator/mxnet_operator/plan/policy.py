"""The times that no field of a job sets: one argument of `plan`, so that a test or a laptop has its own."""

from datetime import timedelta

import msgspec


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's own times; the defaults are what `docs/semantics.md` says."""

    first_backoff: timedelta = timedelta(seconds=10)
    """How long the first attempt after a failure waits; each further one waits twice as long."""
    longest_backoff: timedelta = timedelta(minutes=10)
    termination_slack: timedelta = timedelta(seconds=30)
    """How long after its deletionTimestamp, which includes the grace period, a pod is waited for without a word:
    kubelets unmount volumes and report before they let go."""
    ask_for_nodes: timedelta = timedelta(seconds=15)
    """How often the nodes of pods that don't go are asked for: nothing watches them."""
    ask_for_nodes_where_forbidden: timedelta = timedelta(minutes=10)


DEFAULT = Policy()
