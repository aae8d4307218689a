"""Caches of the children of jobs, one per kind."""

from collections.abc import Sequence
from typing import Any, Final

from mxnet_operator.controller.children import KINDS, PODS, ChildKind
from mxnet_operator.controller.projection import owner_uid
from mxnet_operator.integrations.child_kinds import Child
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.resources import Resource
from mxnet_operator.plan import ChildRule, Observed, PodView

_BY_OWNER: Final = "owner uid"


class ChildCaches:
    """Caches of the children of jobs of every kind, in one namespace or in all."""

    def __init__(self, kinds: Sequence[ChildKind] = KINDS) -> None:
        self.kinds = tuple(kinds)
        self.by_resource: dict[Resource, Indexer[Child[Any]]] = {
            kind.resource: Indexer({_BY_OWNER: owner_uid}) for kind in kinds
        }
        self._served = {kind.resource for kind in kinds if kind.needed}

    def served(self) -> tuple[ChildKind, ...]:
        """Return the rows of the kinds that are needed, or that the server serves."""
        return tuple(kind for kind in self.kinds if kind.resource in self._served)

    @property
    def pods(self) -> Indexer[Child[PodView]]:
        return self.by_resource[PODS.resource]

    def serve(self, kind: ChildKind, *, served: bool) -> None:
        """Record whether the server serves an optional kind: objects of a kind that is not served are not created."""
        if served:
            self._served.add(kind.resource)
        elif not kind.needed:
            self._served.discard(kind.resource)

    def children(self, uid: str, resource: Resource) -> tuple[Any, ...]:
        """Return the cached children that the job with this uid controls."""
        return tuple(child.view for child in self.by_resource[resource].by_index(_BY_OWNER, uid))

    def observed(self, uid: str) -> Observed:
        """Return the children of the job with this uid, of every kind that is served."""
        ruled = [kind.resource for kind in self.served() if kind.rule]
        return Observed(
            pods=self.children(uid, PODS.resource),
            children=tuple(view for resource in ruled for view in self.children(uid, resource)),
        )

    @property
    def rules(self) -> tuple[ChildRule, ...]:
        return tuple(kind.rule for kind in self.served() if kind.rule)
