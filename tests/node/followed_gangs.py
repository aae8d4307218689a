"""Gangs on several nodes that are created by others, who follow them to their end: Airflow's task and Argo's step."""

import json
import re

from airflow_runs import Task
from airflow_server import AirflowServer
from argo_fixtures import by_template, messages_of, node_of, outputs_of
from digits_gang import DigitsGang
from node_world import NodeWorld
from real_node.argo import finished, job_of, submit

LOST = "node3"
"""The node that scenes lose: with the pod of Argo's step, and no worker of Airflow's job, whose lines would be lost."""


def train_both(airflow: "AirflowGang", argo: "ArgoGang", **job: int) -> None:
    """Create both, and have them train at the same time, until each has done five epochs."""
    airflow.create(suspend=True, **job)
    argo.create(**job)
    airflow.resume()
    for gang in (airflow, argo):
        gang.trained()


def _placed(operator: str) -> dict[str, list[dict[str, object]]]:
    return {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": operator, "values": [LOST]}]}


class AirflowGang(DigitsGang):
    """Created by a task of a whole Airflow, which is deferred meanwhile, and has one try."""

    _task: Task

    def __init__(self, world: NodeWorld, server: AirflowServer) -> None:
        super().__init__(world, "airflow")
        self._server = server

    def create(self, epochs: int = 40, tolerated: int = 5, **run_policy: int) -> None:
        """Start the task, and wait until it is deferred."""
        self._epochs = epochs
        manifest = self._manifest(epochs, tolerated, run_policy)
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_placed("NotIn")]}}
        manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
        self._task = self._server.trigger("digits_gang", manifest=manifest).task("train")
        self._task.deferred()
        self.name = self._task.xcom("job_name")

    def resume(self) -> None:
        """Let the job begin."""
        change = {"spec": {"runPolicy": {"suspend": False}}}
        self.world.kubectl("patch", "mxjob", self.name, "--type=merge", "-p", json.dumps(change))

    def succeeded(self, restarts: int = 0) -> None:
        """Wait for the task's success, too; its log has each epoch once, and it returns the job's result."""
        super().succeeded(restarts)
        self._task.wait("success")
        assert self._task.xcom()["result"] == self._result()
        log = self._task.shown_log()
        shown = re.findall(r"^\[worker-0\] .*Epoch\[(\d+)\] Validation-accuracy", log, re.MULTILINE)
        assert [int(epoch) for epoch in shown] == [*range(self._epochs)], log


class ArgoGang(DigitsGang):
    """Created by a step that the shipped template is."""

    def __init__(self, world: NodeWorld) -> None:
        super().__init__(world, "argo")

    def create(self, epochs: int = 40, tolerated: int = 5, **run_policy: int) -> None:
        """Submit the workflow, and wait until its job exists."""
        manifest = self._manifest(epochs, tolerated, run_policy)
        workflow = by_template("mxjob-manifest", manifest=json.dumps(manifest))
        preferred = [{"weight": 100, "preference": _placed("In")}]
        affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        workflow["spec"]["affinity"] = affinity
        self._workflow = submit(self.world, workflow)
        self.name = job_of(self.world, self._workflow)

    def succeeded(self, restarts: int = 0) -> None:
        """Wait for the workflow's success, too; its output is the job's result."""
        super().succeeded(restarts)
        done = finished(self.world, self._workflow)
        assert done["status"]["phase"] == "Succeeded", messages_of(done, "manifest")
        assert json.loads(outputs_of(node_of(done, "manifest"))["result"]) == self._result()
