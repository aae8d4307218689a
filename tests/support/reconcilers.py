"""Reconcilers as a controller makes them, of which a test names what it looks at."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.controller.child_caches import ChildCaches
from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.executor import Executor
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.leases import Leases
from mxnet_operator.controller.projection import JobRecord
from mxnet_operator.controller.reconcile import Reconciler
from mxnet_operator.controller.status_writer import StatusWriter
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.plan.times import DEFAULT


def make_reconciler(
    client: Client,
    jobs: Indexer[JobRecord],
    children: ChildCaches,
    writes: OwnWrites,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    **others: Any,
) -> Reconciler:
    """A reconciler of MXJobs without integrations; `others` are arguments of Reconciler."""
    defaults: dict[str, Any] = {
        "kind": MXJOB,
        "executor": Executor(client, writes, served=children.served),
        "recorder": EventRecorder(client, now),
        "on_status": lambda *_: None,
        "leases": Leases(),
        "integrations": (),
        "statuses": StatusWriter(),
        "policy": DEFAULT,
    }
    return Reconciler(client, jobs, children, writes, now=now, **defaults | others)
