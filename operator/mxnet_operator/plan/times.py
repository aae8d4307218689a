"""Times: the settings that no field of a job has, and waits until the next reconciliation."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from mxnet_operator.api.types import Condition

SAY_AGAIN: Final = timedelta(seconds=4)
"""Minimum time between two updates of a message whose details change with other jobs: each update is an API write."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Times that the controller uses, and what it knows of its cluster; `docs/semantics.md` states the defaults."""

    first_backoff: timedelta = timedelta(seconds=10)
    """Back-off of the first restart after a failure; each further one waits twice as long."""
    longest_backoff: timedelta = timedelta(minutes=10)
    fewer_workers_after: timedelta = timedelta(minutes=1)
    """Time for which a restarted gang waits for nodes for all of its Workers, where `minWorkers` allows fewer."""
    termination_slack: timedelta = timedelta(seconds=30)
    """Time after a pod's deletionTimestamp, which includes the grace period, before the job reports it:
    kubelets unmount volumes and report before they let go."""
    ask_for_nodes: timedelta = timedelta(seconds=15)
    """Interval at which the nodes of pods that don't terminate are read: nothing watches them."""
    ask_for_nodes_where_forbidden: timedelta = timedelta(minutes=10)
    job_url_template: str = ""
    """Address of a job's page, with `{namespace}`, `{name}` and `{uid}`; empty where jobs have none."""


DEFAULT: Final = Policy()


def left_of(wait: timedelta, since: datetime | None, now: datetime) -> timedelta:
    """Return what is left of a wait; zero if its beginning is unknown, or so far ahead that a clock was set."""
    if since is None:
        return timedelta(0)
    left = since + wait - now
    return left if timedelta(0) < left <= 2 * wait else timedelta(0)


def time_until_said_again(said: Condition, now: datetime, wait: timedelta = SAY_AGAIN) -> timedelta | None:
    """Return how long the message of a condition stays as it is; None where it may change now."""
    return left_of(wait, said.last_update_time, now) or None
