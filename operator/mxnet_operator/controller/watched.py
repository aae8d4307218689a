"""What is watched of one namespace, or of all: the caches of jobs, pods and Services, and what keeps them filled."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.kinds import Kind
from mxnet_operator.controller.observe import (
    Child,
    JobRecord,
    owner_uid,
    project_job,
    project_pod,
    project_service,
)
from mxnet_operator.controller.reconcile import BY_OWNER
from mxnet_operator.controller.resources import key_of, resource_of
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import PODS, SERVICES, Resource
from mxnet_operator.plan import PodView, ServiceView

JobChanged = Callable[[str, JobRecord | None, JobRecord | None], None]
"""Hears of a job, by its key, what it was and what it is."""
ChildChanged = Callable[[Child[Any] | None, Child[Any] | None], None]

_JOBS_AT_ONCE: Final = 50
"""Jobs in a page where a server can't stream lists: a job may be of more than a megabyte."""
_OURS: Final = f"{names.LABEL_OPERATOR_NAME}={names.OPERATOR_NAME}"


class WatchedJobs:
    """The jobs of one kind."""

    def __init__(self, client: Client, kind: Kind, namespace: str | None, changed: JobChanged) -> None:
        """Nothing is asked of the server before the reflector runs; no namespace means all."""
        self.resource = resource_of(kind)
        self.cache: Indexer[JobRecord] = Indexer()

        def on_change(old: JobRecord | None, new: JobRecord | None) -> None:
            if record := new or old:
                changed(key_of(self.resource, record.key), old, new)

        self.reflector = Reflector(
            client, self.resource, self.cache, project_job, on_change, namespace=namespace, page=_JOBS_AT_ONCE
        )

    @property
    def keys(self) -> list[str]:
        """The keys of all of them."""
        return [key_of(self.resource, job) for job in self.cache]


class WatchedChildren:
    """The pods and Services of jobs of every kind."""

    def __init__(self, client: Client, namespace: str | None, changed: ChildChanged) -> None:
        """As for WatchedJobs."""
        self.namespace = namespace
        self.pods: Indexer[Child[PodView]] = Indexer({BY_OWNER: owner_uid})
        self.services: Indexer[Child[ServiceView]] = Indexer({BY_OWNER: owner_uid})
        of_ours: dict[str, Any] = {"namespace": namespace, "label_selector": _OURS}
        self.reflectors: tuple[Reflector[Any], ...] = (
            Reflector(client, PODS, self.pods, project_pod, changed, **of_ours),
            Reflector(client, SERVICES, self.services, project_service, changed, **of_ours),
        )

    @property
    def caches(self) -> Mapping[Resource, Indexer[Any]]:
        """The caches by resource."""
        return {PODS: self.pods, SERVICES: self.services}
