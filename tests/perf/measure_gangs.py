"""Who has the GPUs of a local node while twelve jobs compete for them, placed pod by pod and placed as gangs.

    nice .venv/bin/python tests/perf/measure_gangs.py >docs/images/gangs-local.json

Twelve jobs of 7 6 5 7 3 6 4 7 5 6 3 7 one-GPU workers, each with a scheduler and a server, on a node of 8 GPUs. Their
pods are created one by one, the first of each job before the second of any. A job's pods end three seconds after all of
them run. The API server, the scheduler and the kubelet are the local cluster's; the GPUs are counted, not there.
"""

import asyncio
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from kubelet_fixtures import make_pod, running_node

from mxnet_operator.api import names

WORKERS = (7, 6, 5, 7, 3, 6, 4, 7, 5, 6, 3, 7)
GPUS = 8
GPU = "nvidia.com/gpu"
HERTZ = 5
LONGEST = 300.0
STUCK = 30.0
"""Seconds without any change after which nothing will come any more."""
MEET = "touch /meet/$HOSTNAME; while [ $(ls /meet | wc -l) -lt {size} ]; do sleep 0.2; done; sleep 3"


async def main() -> None:
    measured = {}
    for way in ("pod by pod", "gangs"):
        with tempfile.TemporaryDirectory() as folder:
            measured[way] = await _measure(Path(folder), as_gangs=way == "gangs")
    json.dump({"gpus": GPUS, "workers": WORKERS, "hertz": HERTZ, "measured": measured}, sys.stdout)


async def _measure(folder: Path, *, as_gangs: bool) -> list[dict[str, float]]:
    """Samples: seconds, GPUs of jobs of which all pods have a node, GPUs of the others, jobs that are done."""
    async with running_node(folder, gpus=GPUS, cpus=1000) as node:
        pods = [
            iter([await _pod(node, folder, job, member, workers, as_gangs=as_gangs) for member in range(workers + 2)])
            for job, workers in enumerate(WORKERS)
        ]
        creating = asyncio.create_task(_create(node, itertools.chain(*itertools.zip_longest(*pods))))
        began, samples, changed = time.monotonic(), [], 0.0
        while True:
            at = time.monotonic() - began
            sample = _sample((await node.client.list("/api/v1/namespaces/default/pods"))["items"])
            if samples and {**samples[-1], "s": 0} != {**sample, "s": 0}:
                changed = at
            samples.append({"s": round(at, 2), **sample})
            if sample["done"] == len(WORKERS) or at > LONGEST or (creating.done() and at - changed > STUCK):
                await creating
                return samples
            await asyncio.sleep(1 / HERTZ)


async def _pod(node, folder: Path, job: int, member: int, workers: int, *, as_gangs: bool) -> dict:
    name, size = f"job-{job}", workers + 2
    meet = folder / name
    if not member:
        meet.mkdir()
        manifest = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MXJob",
            "metadata": {"name": name},
            "spec": {
                "jobMode": "MXTrain",
                "mxReplicaSpecs": {
                    "Worker": {"template": {"spec": {"containers": [{"name": "mxnet", "image": "none"}]}}}
                },
            },
        }
        owner = await node.client.create("/apis/kubeflow.org/v1/namespaces/default/mxjobs", manifest)
        (folder / f"{name}.uid").write_text(owner["metadata"]["uid"])
    pod = make_pod(
        f"{name}-{member}",
        MEET.format(size=size),
        container={
            "resources": {"limits": {GPU: "1"}} if member > 1 else {},
            "volumeMounts": [{"name": "meet", "mountPath": "/meet"}],
        },
        volumes=[{"name": "meet", "hostPath": {"path": str(meet)}}],
    )
    uid = (folder / f"{name}.uid").read_text()
    owner_reference = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": name, "uid": uid, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner_reference]
    if as_gangs:
        pod["metadata"]["annotations"] = {names.GANG_MEMBER_ANNOTATION: f"attempt-0/{size}/2026-11-22T12:00:00Z"}
    return pod


async def _create(node, pods) -> None:
    for pod in pods:
        if pod is not None:
            await node.create(pod)


def _sample(pods: list[dict]) -> dict[str, int]:
    placed, held, ended = Counter(), Counter(), Counter()
    for pod in pods:
        job = pod["metadata"]["ownerReferences"][0]["name"]
        over = pod["status"]["phase"] == "Succeeded"
        placed[job] += bool(pod["spec"].get("nodeName"))
        ended[job] += over
        if pod["spec"].get("nodeName") and not over:
            held[job] += int((pod["spec"]["containers"][0].get("resources") or {}).get("limits", {}).get(GPU, 0))
    sizes = {f"job-{job}": workers + 2 for job, workers in enumerate(WORKERS)}
    complete = sum(gpus for job, gpus in held.items() if placed[job] == sizes[job])
    return {
        "complete": complete,
        "incomplete": sum(held.values()) - complete,
        "done": sum(ended[job] == size for job, size in sizes.items()),
    }


if __name__ == "__main__":
    asyncio.run(main())
