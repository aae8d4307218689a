"""What is watched of one namespace, or of all: the caches of jobs, pods and Services, and what keeps them filled."""

from collections.abc import Callable
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.controller.observe import (
    Child,
    JobRecord,
    owner_uid,
    project_job,
    project_pod,
    project_service,
)
from mxnet_operator.controller.reconcile import BY_OWNER
from mxnet_operator.controller.resources import MXJOBS
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.reflector import Reflector
from mxnet_operator.kube.resources import PODS, SERVICES
from mxnet_operator.plan import PodView, ServiceView

JobChanged = Callable[[JobRecord | None, JobRecord | None], None]
ChildChanged = Callable[[Child[Any] | None, Child[Any] | None], None]

_OURS: Final = f"{names.LABEL_OPERATOR_NAME}={names.OPERATOR_NAME}"


class Watched:
    """Three caches and their reflectors; a controller without rights on the whole cluster has some of these."""

    def __init__(
        self, client: Client, namespace: str | None, job_changed: JobChanged, child_changed: ChildChanged
    ) -> None:
        """Nothing is asked of the server before the reflectors run; no namespace means all."""
        self.namespace = namespace
        self.jobs: Indexer[JobRecord] = Indexer()
        self.pods: Indexer[Child[PodView]] = Indexer({BY_OWNER: owner_uid})
        self.services: Indexer[Child[ServiceView]] = Indexer({BY_OWNER: owner_uid})
        self.reflectors: tuple[Reflector[Any], ...] = (
            Reflector(client, MXJOBS, self.jobs, project_job, job_changed, namespace=namespace),
            Reflector(client, PODS, self.pods, project_pod, child_changed, namespace=namespace, label_selector=_OURS),
            Reflector(
                client,
                SERVICES,
                self.services,
                project_service,
                child_changed,
                namespace=namespace,
                label_selector=_OURS,
            ),
        )

    @property
    def caches(self) -> dict[Any, Indexer[Any]]:
        """The caches by resource."""
        return {MXJOBS: self.jobs, PODS: self.pods, SERVICES: self.services}
