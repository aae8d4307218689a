"""Interface of an integration, and of its reader: what an integration may add to the controller.

An integration is stateless and pure, but for its readers, of which each reconciler has one.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mxnet_operator.api.types import MXJob, ObjectMeta
from mxnet_operator.integrations.child_kinds import ChildKind, KindsState
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import Observed
from mxnet_operator.plan.actions import Event
from mxnet_operator.plan.integration import IntegrationPolicy


@dataclass(frozen=True, kw_only=True)
class ReaderContext:
    """What a reader gets from its reconciler."""

    client: Client
    record: Callable[[ObjectMeta, Event], Awaitable[None]]
    """Function that posts an Event about a job."""
    children: Callable[[str, Resource], tuple[Any, ...]] = lambda *_: ()
    """Function that returns the cached children of the job with a uid."""
    served: Callable[[], Sequence[ChildKind]] = tuple
    """Function that returns the child kinds that the server serves."""
    state: Callable[[], KindsState] = lambda: KindsState("Absent")
    """Function that returns whether the server serves one of the integration's choices."""
    clock: Callable[[], float] = time.monotonic


class JobReader:
    """Reader of what an integration has to know about each job of one reconciler."""

    async def observe(self, job: MXJob, manifest: bytes, observed: Observed, /) -> Observed:
        """Return the observation with what the integration's policy goes by; called before each plan.

        Raises:
            KubeError: it can't be read now.
        """
        return observed

    async def after(self, job: MXJob) -> timedelta | None:
        """Do what is to be done once a plan has been carried out; return when to reconcile the job again."""

    def forget(self, key: str) -> None:
        """Drop what is known of a deleted job."""


class Integration:
    """Another system on the cluster that jobs rely on; each is a folder beside this file and a row of the registry."""

    name: str
    policy: IntegrationPolicy = IntegrationPolicy()
    choices: tuple[tuple[ChildKind, ...], ...] = ()
    """Sets of child kinds, best first: of the first set that the server serves, objects are watched and created."""
    is_awaited: bool = False
    """Whether no job is reconciled before it is known which of the choices is served."""

    def reader(self, context: ReaderContext) -> JobReader | None:
        """Return a reader for one reconciler; None where nothing is to be read."""
