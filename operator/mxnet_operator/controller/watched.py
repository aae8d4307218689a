"""What is watched of one namespace, or of all: the caches of jobs and their children, and what keeps them filled."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.kinds import Kind
from mxnet_operator.controller.child_caches import ChildCaches
from mxnet_operator.controller.children import ChildKind
from mxnet_operator.controller.observe import Child, JobRecord, project_job
from mxnet_operator.controller.resources import key_of, resource_of
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.reflector import Reflector

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
    """The children of jobs of every kind."""

    def __init__(
        self, client: Client, namespace: str | None, changed: ChildChanged, kinds: Sequence[ChildKind]
    ) -> None:
        """Nothing is asked of the server before the reflectors run; no namespace means all."""
        self.namespace = namespace
        self.caches = ChildCaches(kinds)
        self._client, self._changed = client, changed
        self.needed = tuple(self._reflector(kind) for kind in kinds if kind.needed)
        self._optional: dict[ChildKind, Reflector[Any]] = {}

    @property
    def reflectors(self) -> tuple[Reflector[Any], ...]:
        """All that run."""
        return (*self.needed, *self._optional.values())

    def begin(self, kind: ChildKind) -> Reflector[Any]:
        """Have a reflector for a kind that is served now, though no job needs it; it is to be run."""
        self._optional[kind] = self._reflector(kind)
        return self._optional[kind]

    def end(self, kind: ChildKind) -> None:
        """Forget what was watched of a kind that is no longer served."""
        self._optional.pop(kind, None)
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
