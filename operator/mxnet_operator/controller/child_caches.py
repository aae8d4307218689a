"""The children of jobs as the controller knows them: a cache for each kind, filled by whoever watches."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mxnet_operator.controller.children import KINDS, PODS, ChildKind
from mxnet_operator.controller.observe import Child, owner_uid
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import Observed, PodView

_BY_OWNER: Final = "owner uid"


class ChildCaches:
    """The caches of the children of jobs of every kind, in one namespace or in all."""

    def __init__(self, kinds: Sequence[ChildKind] = KINDS) -> None:
        """Empty caches; of the kinds that are not needed none is served yet."""
        self.kinds = tuple(kinds)
        self._caches: dict[Resource, Indexer[Child[Any]]] = {
            kind.resource: Indexer({_BY_OWNER: owner_uid}) for kind in kinds
        }
        self._served = {kind.resource for kind in kinds if kind.needed}

    @property
    def by_resource(self) -> Mapping[Resource, Indexer[Child[Any]]]:
        """All of them."""
        return self._caches

    @property
    def pods(self) -> Indexer[Child[PodView]]:
        """The cache of pods."""
        return self._caches[PODS.resource]

    def serve(self, kind: ChildKind, *, served: bool) -> None:
        """Note whether the server serves a kind that is not needed: no object of any other is created."""
        if served:
            self._served.add(kind.resource)
        elif not kind.needed:
            self._served.discard(kind.resource)

    def children(self, uid: str, resource: Resource) -> tuple[Any, ...]:
        """What is cached of the children that the job with this uid controls."""
        return tuple(child.view for child in self._caches[resource].by_index(_BY_OWNER, uid))

    def observed(self, uid: str) -> Observed:
        """The children of the job with this uid, of every kind that is served."""
        ruled = [(kind.resource, kind.rule) for kind in self.kinds if kind.rule and kind.resource in self._served]
        return Observed(
            pods=self.children(uid, PODS.resource),
            children=tuple(view for resource, _ in ruled for view in self.children(uid, resource)),
            rules=tuple(rule for _, rule in ruled),
        )
