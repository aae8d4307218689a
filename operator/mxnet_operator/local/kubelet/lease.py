"""Node Lease, renewed while the kubelet runs, so that kube-controller-manager doesn't mark the node as lost."""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

from mxnet_operator.kube.client import MERGE_PATCH, Client
from mxnet_operator.kube.errors import ApiError, KubeError
from mxnet_operator.kube.resources import LEASES
from mxnet_operator.local.kubelet.timing import Timing

_LOG = logging.getLogger(__name__)

_NAMESPACE = "kube-node-lease"
_DURATION_SECONDS = 40


async def keep_lease(client: Client, node_name: str, timing: Timing) -> None:
    """Renew the node's Lease until cancelled; a failed renewal is retried when the next one is due."""
    while True:
        try:
            await _renew(client, node_name)
        except KubeError as error:
            _LOG.info("lease of node %s: %s", node_name, error)
        await asyncio.sleep(timing.lease_renewal)


async def _renew(client: Client, node_name: str) -> None:
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec: dict[str, Any] = {
        "holderIdentity": node_name,
        "leaseDurationSeconds": _DURATION_SECONDS,
        "renewTime": time,
    }
    try:
        await client.patch(LEASES.path(_NAMESPACE, node_name), {"spec": spec}, MERGE_PATCH)
    except ApiError as error:
        if error.code != 404:
            raise
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node_name, "namespace": _NAMESPACE},
            "spec": spec,
        }
        await client.create(LEASES.path(_NAMESPACE), lease)
