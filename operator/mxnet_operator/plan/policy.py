"""Settings that no field of a job has: one argument of `plan`, so that tests and small clusters have their own."""

from datetime import timedelta

import msgspec


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Times that the controller uses, and what it knows of its cluster; `docs/semantics.md` states the defaults."""

    first_backoff: timedelta = timedelta(seconds=10)
    """Back-off of the first restart after a failure; each further one waits twice as long."""
    longest_backoff: timedelta = timedelta(minutes=10)
    termination_slack: timedelta = timedelta(seconds=30)
    """Time after a pod's deletionTimestamp, which includes the grace period, before the job reports it:
    kubelets unmount volumes and report before they let go."""
    incomplete_gang: timedelta = timedelta(minutes=1)
    """Time for which a gang keeps the nodes of a part of its pods while there are none for the rest."""
    ask_for_nodes: timedelta = timedelta(seconds=15)
    """Interval at which the nodes of pods that don't terminate are read: nothing watches them."""
    ask_for_nodes_where_forbidden: timedelta = timedelta(minutes=10)
    job_url_template: str = ""
    """Address of a job's page, with `{namespace}`, `{name}` and `{uid}`; empty where jobs have none."""
    pods_tell_their_gang: bool = False
    """Whether the scheduler goes by `names.GANG_MEMBER_ANNOTATION` of the pods, as the local cluster's own does."""


DEFAULT = Policy()
