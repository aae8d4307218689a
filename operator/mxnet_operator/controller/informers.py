"""Informers of one namespace, or of all: caches of jobs and their children, and the reflectors that fill them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.kinds import Kind
from mxnet_operator.api.types import TrainingStatus
from mxnet_operator.client.resources import resource_of
from mxnet_operator.controller.child_caches import ChildCaches
from mxnet_operator.controller.children import ChildKind
from mxnet_operator.controller.projection import JobRecord, project_job
from mxnet_operator.integrations.child_kinds import Child
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.reflector import Reflector

JobChanged = Callable[[str, JobRecord | None, JobRecord | None], None]
"""Callback for each change of a job: its key, the job before and after."""
ChildChanged = Callable[[Child[Any] | None, Child[Any] | None], None]

_JOBS_AT_ONCE: Final = 50
"""Jobs in a page where a server can't stream lists: a job may be of more than a megabyte."""
_OURS: Final = f"{names.LABEL_OPERATOR_NAME}={names.OPERATOR_NAME}"


class WatchedJobs:
    """Informer of the jobs of one kind."""

    def __init__(self, client: Client, kind: Kind, namespace: str | None, changed: JobChanged) -> None:
        """Create an informer that sends no request before its reflector runs; no namespace means all."""
        self._kind, self.resource = kind, resource_of(kind)
        self.cache: Indexer[JobRecord] = Indexer()

        def on_change(old: JobRecord | None, new: JobRecord | None) -> None:
            if record := new or old:
                changed(kind.job_key(record.key), old, new)

        self.reflector = Reflector(
            client, self.resource, self.cache, project_job, on_change, namespace=namespace, page=_JOBS_AT_ONCE
        )

    def states(self) -> Iterator[tuple[str, str]]:
        return ((job.key.partition("/")[0], job.state) for job in self._jobs())

    def trainings(self) -> Iterator[tuple[str, TrainingStatus]]:
        """Return key and training of each cached job that runs and whose logs say something of it."""
        return ((job.key, job.training) for job in self._jobs() if job.training is not None)

    @property
    def keys(self) -> list[str]:
        """Keys of all cached jobs, the new ones first."""
        jobs = sorted(self._jobs(), key=lambda job: bool(job.state))
        return [self._kind.job_key(job.key) for job in jobs]

    def _jobs(self) -> Iterator[JobRecord]:
        return filter(None, map(self.cache.get, self.cache))


class WatchedChildren:
    """Informers of the children of jobs, of every kind."""

    def __init__(
        self, client: Client, namespace: str | None, changed: ChildChanged, kinds: Sequence[ChildKind]
    ) -> None:
        """Create informers that send no request before their reflectors run; no namespace means all."""
        self.namespace = namespace
        self.caches = ChildCaches(kinds)
        self._client, self._changed = client, changed
        self.needed = tuple(self._reflector(kind) for kind in kinds if kind.needed)
        self.optional: dict[ChildKind, Reflector[Any]] = {}
        """Reflectors of the optional kinds that are watched."""

    @property
    def reflectors(self) -> tuple[Reflector[Any], ...]:
        return (*self.needed, *self.optional.values())

    def begin(self, kind: ChildKind) -> Reflector[Any]:
        """Return a new reflector, to be run, for an optional kind that is served now."""
        self.optional[kind] = self._reflector(kind)
        return self.optional[kind]

    def end(self, kind: ChildKind) -> None:
        """Drop the cache and reflector of a kind that is no longer served."""
        self.optional.pop(kind, None)
        self.caches.serve(kind, served=False)
        cache = self.caches.by_resource[kind.resource]
        for key in list(cache):
            cache.remove(key)

    def _reflector(self, kind: ChildKind) -> Reflector[Any]:
        return Reflector(
            self._client,
            kind.resource,
            self.caches.by_resource[kind.resource],
            kind.project,
            self._changed,
            namespace=self.namespace,
            label_selector=_OURS,
        )
