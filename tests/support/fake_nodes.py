"""Fake nodes, on which KWOK runs pods, and the annotations that say how these pods end."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from apiserver_fixtures import Api
from waiting import SECONDS

EXIT_CODE = "test.mxjob/exit-code"
FATES = "test.mxjob/fates"
RUNS_FOR = "test.mxjob/runs-for"
STOPS_FOR = "test.mxjob/stops-for"
NODES = "/api/v1/nodes"


def fake_node(name: str, **resources: str) -> dict[str, Any]:
    """The manifest of a node of 8 CPUs with further resources."""
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110", **resources}
    return {
        "metadata": {"name": name, "labels": {"type": "kwok", "kubernetes.io/hostname": name}},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


@asynccontextmanager
async def fake_nodes(api: Api, *manifests: dict[str, Any]) -> AsyncIterator[None]:
    """The nodes, once pods may be placed on them, until the context ends."""
    wanted = {manifest["metadata"]["name"] for manifest in manifests}
    for manifest in manifests:
        (await api.post(NODES, manifest)).ok()
    try:
        async with asyncio.timeout(SECONDS), api.watch(NODES, labelSelector="type=kwok") as events:
            while wanted:  # kube-controller-manager lets pods onto a node once it is ready
                found = (await events.next())["object"]
                conditions = found["status"].get("conditions", [])
                ready = any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
                if ready and not found["spec"].get("taints"):
                    wanted.discard(found["metadata"]["name"])
        yield
    finally:
        for manifest in manifests:
            await api.delete(f"{NODES}/{manifest['metadata']['name']}")


def ending(builder: Any, **exit_codes: int) -> Any:
    """The job whose pods end, a moment after they started, with these codes by type; the others run on."""
    for replica_type, code in exit_codes.items():
        builder.template_metadata(replica_type, annotations={EXIT_CODE: str(code)})
    return builder


def fated(builder: Any, fates: Any, *, runs_for: Any = "500ms", stops_for: Any = "0s") -> Any:
    """The job whose pods meet these fates, by type, index and attempt; the others run on.

    A fate has an `exitCode`, what the container `says`, how the runtime names its end (`ended`: OOMKilled), and a
    `reason` and `message` of the pod's own (Evicted). One whose pod is `never` `admitted`, or `never` `started`, has
    the latter two. A pod ends so long after it started, and goes so long after it was asked to.
    """
    by_type: dict[str, dict[str, Any]] = {
        replica_type: {} for replica_type in builder.manifest()["spec"]["mxReplicaSpecs"]
    }
    for (replica_type, index, attempt), fate in fates.items():
        by_type[replica_type][f"{index}.{attempt}"] = fate
    for replica_type, of_type in by_type.items():
        annotations = {FATES: json.dumps(of_type), RUNS_FOR: runs_for, STOPS_FOR: stops_for}
        builder.template_metadata(replica_type, annotations=annotations)
    return builder
