"""Manifests of small jobs for a running cluster: one worker with a Python program, a gang, or the examples' own."""

import json
from pathlib import Path
from typing import Any

import yaml
from cluster_fixtures import EXAMPLES

from mxnet_operator.api import names
from mxnet_operator.local.images.store import BASE_IMAGE


def worker_job(name: str, program: str, **spec: Any) -> dict[str, Any]:
    """A job of one worker that runs `program` with the MXNet image's Python; it imports no MXNet by itself."""
    container = {"name": names.CONTAINER, "image": BASE_IMAGE, "command": ["python", "-u", "-c", program]}
    worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": {names.WORKER: worker}, **spec},
    }


def waits_for(path: Path) -> str:
    """A program for `worker_job` that says `begun`, waits until there is something at the path, and says `ended`."""
    return (
        "import os, time\nprint('begun', flush=True)\n"
        f"while not os.path.exists({str(path)!r}): time.sleep(0.1)\n"
        "print('ended')"
    )


def digits_job(name: str, *args: str) -> dict[str, Any]:
    """The example job under another name, with more arguments for its script."""
    return example_job("digits", name, *args)


def example_job(example: str, name: str, *args: str) -> dict[str, Any]:
    """The job of a folder of examples/ under another name, with more arguments for its script."""
    # Written and read again, so that the replicas, one anchor in the file, are separate objects.
    job: dict[str, Any] = json.loads(json.dumps(yaml.safe_load((EXAMPLES / example / "mxjob.yaml").read_text())))
    job["metadata"]["name"] = name
    for spec in job["spec"]["mxReplicaSpecs"].values():
        spec["template"]["spec"]["containers"][0]["args"] += args
    return job


def gang_job(name: str, image: str, command: list[str]) -> dict[str, Any]:
    """A job of a scheduler, a server and two workers, all with the same command."""
    container = {"name": names.CONTAINER, "image": image, "command": command}
    counts = {names.SCHEDULER: 1, names.SERVER: 1, names.WORKER: 2}
    job = worker_job(name, "")
    job["spec"]["mxReplicaSpecs"] = {
        kind: {"replicas": count, "template": {"spec": {"containers": [container]}}} for kind, count in counts.items()
    }
    return job
