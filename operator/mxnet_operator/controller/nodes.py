"""Nodes of pods that don't terminate, read one by one: they are few, so there is no watch and no cache of nodes."""

import asyncio
from collections.abc import Iterable

from mxnet_operator.kube.answers import Metadata, Shape
from mxnet_operator.kube.client import ApiError, Client
from mxnet_operator.kube.resources import NODES
from mxnet_operator.plan import NodeView


class _Taint(Shape, frozen=True):
    key: str = ""


class _Condition(Shape, frozen=True):
    type: str = ""
    status: str = ""


class _Spec(Shape, frozen=True):
    taints: list[_Taint] | None = None


class _Status(Shape, frozen=True):
    conditions: list[_Condition] | None = None


class _Node(Shape, frozen=True):
    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


async def node_views(client: Client, names: Iterable[str]) -> tuple[NodeView, ...]:
    """Return the present state of these nodes.

    Raises:
        KubeError: it can't be read; a rejection for lack of rights, as a namespaced controller gets it, is a state
            (`Forbidden`).
    """
    return tuple(await asyncio.gather(*(_view(client, name) for name in names)))


async def _view(client: Client, name: str) -> NodeView:
    try:
        node = await client.get_as(NODES.path(name=name), _Node)
    except ApiError as error:
        if error.code == 404:
            return NodeView(name=name, state="Gone")
        if error.code == 403:
            return NodeView(name=name, state="Forbidden")
        raise
    return NodeView(name=name, state="OutOfService" if _is_out_of_service(node) else "Present")


def _is_out_of_service(node: _Node) -> bool:
    tainted = any(taint.key == NodeView.OUT_OF_SERVICE for taint in node.spec.taints or ())
    ready = any((each.type, each.status) == ("Ready", "True") for each in node.status.conditions or ())
    return tainted and not ready
