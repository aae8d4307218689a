"""The nodes of pods that won't go, asked for one by one: they are few, so there is no watch and no cache of nodes."""

import asyncio
from collections.abc import Iterable
from typing import Any

from mxnet_operator.kube.client import ApiError, Client
from mxnet_operator.kube.resources import NODES
from mxnet_operator.plan import NodeView


async def node_views(client: Client, names: Iterable[str]) -> tuple[NodeView, ...]:
    """What the server has of these nodes now.

    Raises:
        KubeError: it can't be asked; a refusal for lack of rights, as a namespaced controller gets it, is an answer
            (`Forbidden`).
    """
    return tuple(await asyncio.gather(*(_view(client, name) for name in names)))


async def _view(client: Client, name: str) -> NodeView:
    try:
        node = await client.get(NODES.path(name=name))
    except ApiError as error:
        if error.code == 404:
            return NodeView(name=name, state="Gone")
        if error.code == 403:
            return NodeView(name=name, state="Forbidden")
        raise
    return NodeView(name=name, state="OutOfService" if _is_out_of_service(node) else "Present")


def _is_out_of_service(node: dict[str, Any]) -> bool:
    tainted = any(taint["key"] == NodeView.OUT_OF_SERVICE for taint in node.get("spec", {}).get("taints") or ())
    conditions = node.get("status", {}).get("conditions") or ()
    ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
    return tainted and not ready
