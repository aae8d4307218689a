"""Gangs on several nodes that are created by others, who follow them to their end: Airflow's task and Argo's step."""

import json
import re

from airflow_runs import Task
from airflow_server import AirflowServer
from argo_fixtures import by_template, messages_of, node_of, outputs_of
from digits_gang import DigitsGang
from node_world import NodeWorld
from real_node.argo import finished, job_of, submit
from waiting import MINUTES, eventually


class AirflowGang(DigitsGang):
    """Created by a task of a whole Airflow, which is deferred meanwhile, and has one try."""

    _task: Task

    def __init__(self, world: NodeWorld, server: AirflowServer) -> None:
        super().__init__(world, "airflow")
        self._server = server

    def create(self, epochs: int = 40, tolerated: int = 5, **run_policy: int) -> None:
        """Start the task, and wait until its job's pods are placed."""
        self._epochs = epochs
        manifest = self._manifest(epochs, tolerated, run_policy)
        self._task = self._server.trigger("digits_gang", manifest=manifest).task("train")
        jobs = eventually(lambda: self.world.get("mxjobs", "-l", "dag_id=digits_gang")["items"], within=MINUTES)
        self.name = jobs[0]["metadata"]["name"]
        eventually(lambda: len(self.nodes() - {""}) == 3)
        self._task.deferred()

    def succeeded(self, restarts: int = 0) -> None:
        """Wait for the task's success, too; its log has each epoch once, and it returns the job's result."""
        super().succeeded(restarts)
        self._task.wait("success")
        assert self._task.xcom()["result"] == self._result()
        log = self._task.shown_log()
        shown = re.findall(r"^\[worker-0\] .*Epoch\[(\d+)\] Validation-accuracy", log, re.MULTILINE)
        assert [int(epoch) for epoch in shown] == [*range(self._epochs)], log


class ArgoGang(DigitsGang):
    """Created by a step that the shipped template is, whose pod runs on a node of the test's choice at first."""

    def __init__(self, world: NodeWorld) -> None:
        super().__init__(world, "argo")
        self.polled_from = "node1"

    def create(self, epochs: int = 40, tolerated: int = 5, **run_policy: int) -> None:
        """Submit the workflow, and wait until its job exists."""
        manifest = self._manifest(epochs, tolerated, run_policy)
        workflow = by_template("mxjob-manifest", manifest=json.dumps(manifest))
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [self.polled_from]}
        preferred = {"weight": 100, "preference": {"matchExpressions": [here]}}
        workflow["spec"]["affinity"] = {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
        }
        self._workflow = submit(self.world, workflow)
        self.name = job_of(self.world, self._workflow)

    def succeeded(self, restarts: int = 0) -> None:
        """Wait for the workflow's success, too; its output is the job's result."""
        super().succeeded(restarts)
        done = finished(self.world, self._workflow)
        assert done["status"]["phase"] == "Succeeded", messages_of(done, "manifest")
        assert json.loads(outputs_of(node_of(done, "manifest"))["result"]) == self._result()
