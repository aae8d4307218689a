"""Plays a job with a fault in it to its end: what failing_training/train.py does to itself, or what is done to it."""

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_fixtures import LocalCluster
from jobs import gang_job
from waiting import eventually

from mxnet_operator.api.conditions import terminal_message

IMAGE = "mxjob/failing-training:1.0"
FOLDER = Path(__file__).parents[1] / "local" / "failing_training"
EPOCHS = 4  # of its train.py
ABSENT: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "no image": ({"image": "no/such:1"}, {"progressDeadlineSeconds": 2}),
    "no room": ({"resources": {"requests": {"cpu": "1000"}}}, {"activeDeadlineSeconds": 3}),
    "no MXNet": ({"command": ["sleep", "1000"]}, {"activeDeadlineSeconds": 3}),
}
"""Why a server never comes up: what its container is then, and the deadline that ends the job."""
DELETED = "deleted"
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "segfault": signal.SIGSEGV}


@dataclass(frozen=True)
class Case:
    """A cell of the matrix."""

    replica: str = "worker-0"
    fault: str = ""
    at: str = "middle"
    policy: str = "Never"
    ends: str = "Failed"
    workers: int = 2
    shell: str = ""
    """Run the script by this line of shell."""
    deadline_after: str = ""
    """Set activeDeadlineSeconds once the replica's pod has this phase after the fault."""

    def __str__(self) -> str:
        policy = "" if self.policy == "Never" else self.policy
        parts = (self.replica, self.fault, self.at, self.shell, policy)
        return "-".join(each for each in parts if each)

    @property
    def code(self) -> int:
        """The exit code of the replica. MXNet's own handler turns a segmentation fault into an abort."""
        codes = {"exception": 1, "sys.exit": 3, "os._exit": 5, "SIGKILL": 137, "SIGTERM": 143}
        return codes.get(self.fault) or (139 if self.at == "start" else 134)

    @property
    def from_outside(self) -> bool:
        """Whether the test strikes: MXNet never lets the script of a scheduler or a server go on."""
        return self.fault == DELETED or (self.fault in SIGNALS and not self.replica.startswith("worker"))


UNDISTURBED = Case(ends="Succeeded")


@dataclass(frozen=True)
class Played:
    """What became of a case's job."""

    name: str
    job: dict[str, Any]
    results: list[dict[str, Any]]
    """What the workers left as their result, once they have succeeded."""
    restarting: str
    """What was said when it was torn down to be tried again; empty if it wasn't."""
    times: str

    @property
    def message(self) -> str:
        return terminal_message(self.job)


def manifest_of(case: Case, name: str, shared: Path) -> dict[str, Any]:
    job = gang_job(name, IMAGE, ["sh", "-c", case.shell] if case.shell else ["python", "train.py"])
    job["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = case.workers
    fault = "outside" if case.from_outside else case.fault
    variables = {"FAULT": fault, "FAULT_AT": case.at, "FAULT_IN": case.replica, "SHARED": "/shared"}
    variables["RESULT"] = "/dev/termination-log"
    for spec in job["spec"]["mxReplicaSpecs"].values():
        spec["restartPolicy"] = case.policy
        pod = spec["template"]["spec"]
        pod["volumes"] = [{"name": "shared", "hostPath": {"path": str(shared)}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
        pod["containers"][0]["env"] = [{"name": key, "value": value} for key, value in variables.items()]
    if case.fault in ABSENT:
        container, job["spec"]["runPolicy"] = ABSENT[case.fault]
        server = job["spec"]["mxReplicaSpecs"]["Server"]["template"]["spec"]
        server["containers"] = [{**server["containers"][0], **container}]
    return job


def play(cluster: LocalCluster, case: Case, name: str, shared: Path) -> Played:
    """Run a job with its fault to the end that the case expects, and until no process of it is left."""
    cluster.create(manifest_of(case, name, shared))
    struck = strike(cluster, case, name, shared)
    job = cluster.wait_for(name, case.ends)
    ended = time.time()
    eventually(lambda: not cluster.processes_of(name))
    silent = time.time()
    times = f"{case.ends} {ended - struck:.1f} s after it, no process {silent - struck:.1f} s after it"
    results = []
    if case.ends == "Succeeded":
        for index in range(case.workers):
            (container,) = cluster.get("pod", f"{name}-worker-{index}")["status"]["containerStatuses"]
            results.append(json.loads(container["state"]["terminated"]["message"]))
    events = cluster.find("events", fields=f"involvedObject.name={name},reason=MXJobRestarting")
    restarting = "\n".join(event["message"] for event in events)
    return Played(name, job, results, restarting, times)


def strike(cluster: LocalCluster, case: Case, name: str, shared: Path) -> float:
    """Let the fault happen; returns when it did, or when the job began if the case has none (seconds since 1970)."""
    pod = f"{name}-{case.replica}"
    if not case.fault or case.fault in ABSENT:
        return time.time()
    if case.from_outside:
        eventually((shared / "reached").exists)
        (process,) = (each for each, host in cluster.processes_of(name).items() if host == pod)
        (shared / "struck").touch()
        struck = time.time()
        if case.fault == DELETED:
            cluster.delete("pod", pod, wait=False)
        else:
            os.kill(process, SIGNALS[case.fault])
        return struck
    eventually(lambda: (shared / "struck").exists() and (shared / "struck").read_text())
    if case.deadline_after:
        cluster.wait_until("pod", pod, lambda each: each is not None and each["status"]["phase"] == case.deadline_after)
        assert cluster.get("mxjob", name)["status"]["state"] == "Running", "there would be no need for a deadline"
        cluster.patch("mxjob", name, {"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}})
        return time.time()
    return float((shared / "struck").read_text())
