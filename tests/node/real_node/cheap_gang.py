"""A gang of processes that are cheaper than MXNet, for what a kubelet does to any."""

from pathlib import Path
from typing import Any

from builders import JobBuilder, make_mxjob
from controller_fixtures import submitted

BUSYBOX = "docker.io/library/busybox:1.35"
SERVE = ["sh", "-c", "trap 'exit 143' TERM; while :; do sleep 0.2; done"]
UNTIL_AGAIN = ["sh", "-c", "trap 'exit 143' TERM; while [ ! -e /state/again ]; do sleep 0.2; done"]
"""A program that ends when the test makes a file on its node."""


def gang(*, image: str = BUSYBOX, **worker: Any) -> JobBuilder:
    """A scheduler, a server and two workers, which are containers with these fields."""
    serve = {"image": BUSYBOX, "command": SERVE}
    builder = make_mxjob("gang").scheduler(1, **serve).server(1, **serve).worker(2, image=image, **worker)
    return builder.restart("ExitCode").success_policy("AllWorkers")


def with_state(builder: JobBuilder, folder: Path) -> dict[str, Any]:
    """The gang's manifest with the folder in its workers."""
    job: dict[str, Any] = submitted(builder)
    spec = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["volumes"] = [{"name": "state", "hostPath": {"path": str(folder)}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
    return job
