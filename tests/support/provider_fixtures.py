"""What tests of the Airflow operator stand on: a real API server, and a test that plays controller and kubelet."""

import asyncio
import functools
import importlib
import json
import re
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uuid6
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import TaskDeferred
from airflow.triggers.base import BaseTrigger
from apiserver_fixtures import RunningServer, running_server
from kubernetes import client
from served_requests import in_thread
from waiting import SECONDS, eventually

from mxnet_operator.api import names
from mxnet_operator.client.job_client import JobRef
from mxnet_operator.local.apiserver.logs import LogRequest, LogSource
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.operators.mxnet_job import MXNetJobOperator

STAMP = "2026-11-21T12:00:00Z"


def server_in_thread(folder: Path, log_source: LogSource | None = None) -> AbstractContextManager[RunningServer]:
    """The local API server on an event loop of its own, for clients that block."""
    return in_thread(running_server(folder, log_source=log_source))


def stored(value: Any) -> Any:
    """What a database gives back; fails where PostgreSQL would."""
    text = json.dumps(value, allow_nan=False)
    assert not re.search(r"\\u0000|\\ud[89a-f]", re.sub(r"\\ud[89ab]..\\ud[c-f]..", "", text)), text
    return json.loads(text)


@dataclass
class Try:
    """One try of a task, as Airflow describes it in the context."""

    dag_id: str = "train_digits"
    task_id: str = "train"
    run_id: str = "manual__2026-11-21T12:00:00+00:00"
    map_index: int = -1
    try_number: int = 1
    max_tries: int = 0
    id: uuid.UUID = field(default_factory=uuid6.uuid7)
    pushed: dict[str, Any] = field(default_factory=dict)

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = stored(value)

    def xcom_pull(self, *, key: str, **_: Any) -> Any:
        return self.pushed.get(key)


class Store(dict[str, Any]):
    """What Airflow's task state store is to a task: keys and JSON, kept across its tries."""

    def set(self, key: str, value: Any) -> None:
        self[key] = stored(value)


@dataclass
class TaskRun:
    """An operator that executes in a thread."""

    operator: MXNetJobOperator
    ti: Try
    store: Store
    done: "Future[Any]"

    def result(self) -> Any:
        """What the task returned; raises what it raised."""
        return self.done.result(SECONDS)


class OperatorWorld:
    """A cluster where nothing happens unless the test makes it happen."""

    def __init__(self, running: RunningServer, threads: ThreadPoolExecutor, *, deferrable: bool = False) -> None:
        self.deferrable = deferrable
        self.kubeconfig = str(running.kubeconfig)
        self.hook = MXNetJobHook(config_file=self.kubeconfig)
        self._threads = threads
        self._started: list[MXNetJobOperator] = []
        self.outlet_events: Any = defaultdict(lambda: SimpleNamespace(extra={}))

    def operator(self, **arguments: Any) -> MXNetJobOperator:
        given = {"image": "mxjob/mxnet:1.9.1", "command": ["true"], "poll_interval": 0.05, **arguments}
        if "manifest" in arguments:
            given = {"poll_interval": 0.05, **arguments}
        return MXNetJobOperator(
            **{"task_id": "train", "config_file": self.kubeconfig, "deferrable": self.deferrable, **given}
        )

    def start(self, operator: MXNetJobOperator, ti: Try | None = None, store: Store | None = None) -> TaskRun:
        """Execute a task as Airflow's task runner does, and where it defers the trigger as its triggerer does."""
        ti = ti or Try()
        store = Store() if store is None else store
        self._started.append(operator)

        def execute() -> Any:
            ExecutorSafeguard.tracker.set(operator)
            context: Any = {"ti": ti, "task_state_store": store, "outlet_events": self.outlet_events}
            run = functools.partial(operator.execute, context)
            while True:
                try:
                    return run()
                except TaskDeferred as deferred:
                    payload = asyncio.run(first_event(deferred.trigger))
                    kwargs = {**(deferred.kwargs or {}), "event": payload}
                    run = functools.partial(operator.resume_execution, deferred.method_name, kwargs, context)

        return TaskRun(operator, ti, store, self._threads.submit(execute))

    def close(self) -> None:
        """Kill the tasks that a failed test has left waiting."""
        for operator in self._started:
            operator.on_kill()
            if self.deferrable and operator.job_ref is not None:
                self.hook.delete_job(operator.job_ref)

    def job_of(self, run: TaskRun) -> dict[str, Any]:
        """The job that a task has created, once it has."""

        def look() -> dict[str, Any] | None:
            if run.done.done() and (error := run.done.exception()) is not None:
                pytest.fail(f"the task ended with {error!r}")
            return self.hook.get_job(JobRef(name=run.ti.pushed["job_name"], namespace=run.ti.pushed["job_namespace"]))

        job: dict[str, Any] = eventually(look)
        return job

    def jobs(self) -> list[dict[str, Any]]:
        found: dict[str, Any] = self.hook.custom_object_client.list_namespaced_custom_object(
            names.GROUP, names.VERSION, "default", names.PLURAL
        )
        return list(found["items"])

    def write_status(self, job: dict[str, Any], state: str, message: str = "", **fields: Any) -> None:
        """Write the job's status as the controller would."""
        condition = {
            "type": state,
            "status": "True",
            "reason": f"MXJob{state}",
            "message": message,
            "lastUpdateTime": STAMP,
            "lastTransitionTime": STAMP,
        }
        status = {"state": state, "conditions": [condition], "replicaStatuses": None, "startTime": STAMP, **fields}
        self.hook.custom_object_client.patch_namespaced_custom_object_status(
            names.GROUP,
            names.VERSION,
            job["metadata"]["namespace"],
            names.PLURAL,
            job["metadata"]["name"],
            {"status": status},
        )

    def add_pod(self, job: dict[str, Any], replica_type: str, index: int, state: dict[str, Any]) -> None:
        """Create a replica's pod as controller and kubelet would; `state` is its container's."""
        metadata = job["metadata"]
        name = names.replica_name(metadata["name"], replica_type, index)
        owner = {"apiVersion": names.API_VERSION, "kind": names.KIND, "name": metadata["name"]}
        pod = {
            "metadata": {
                "name": name,
                "labels": {
                    names.LABEL_JOB_NAME: metadata["name"],
                    names.LABEL_REPLICA_TYPE: replica_type.lower(),
                    names.LABEL_REPLICA_INDEX: str(index),
                },
                "ownerReferences": [{**owner, "uid": metadata["uid"], "controller": True}],
            },
            "spec": {
                "nodeName": "node",
                "containers": [{"name": "mxnet", "image": "mxjob/mxnet:1.9.1"}],
                "restartPolicy": "Never",
            },
        }
        self.hook.core_v1_client.create_namespaced_pod(metadata["namespace"], pod)
        self.write_pod_state(job, replica_type, index, state)

    def write_pod_state(self, job: dict[str, Any], replica_type: str, index: int, state: dict[str, Any]) -> None:
        name = names.replica_name(job["metadata"]["name"], replica_type, index)
        container = {"name": "mxnet", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        status = {"phase": "Running", "containerStatuses": [container]}
        self.hook.core_v1_client.patch_namespaced_pod_status(name, job["metadata"]["namespace"], {"status": status})

    def delete(self, job: dict[str, Any]) -> None:
        self.hook.custom_object_client.delete_namespaced_custom_object(
            names.GROUP, names.VERSION, "default", names.PLURAL, job["metadata"]["name"], body=client.V1DeleteOptions()
        )


def operator_world(running: RunningServer, *, deferrable: bool) -> Iterator[OperatorWorld]:
    """An OperatorWorld for one test, which leaves no task behind."""
    with ThreadPoolExecutor(4) as threads:
        world = OperatorWorld(running, threads, deferrable=deferrable)
        yield world
        world.close()


async def first_event(trigger: BaseTrigger) -> Any:
    """The event of a trigger that was made again from its arguments, as both went through Airflow's database."""
    path, arguments = trigger.serialize()
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**json.loads(json.dumps(arguments)))
    async for event in again.run():
        return json.loads(json.dumps(event.payload))
    raise AssertionError("the trigger sent no event")


RUNNING = {"running": {"startedAt": STAMP}}


def terminated(exit_code: int, message: Any = "") -> dict[str, Any]:
    text = message if isinstance(message, str) else json.dumps(message)
    return {"terminated": {"exitCode": exit_code, "message": text, "startedAt": STAMP, "finishedAt": STAMP}}


class StampedLog:
    """The log of one container with timestamps, one line a second, as a kubelet serves it.

    `breaks` says after how many lines the first streams break off, one number for each.
    """

    def __init__(self, *lines: bytes, breaks: tuple[int, ...] = ()) -> None:
        self.lines = list(lines)
        self.asked: list[LogRequest] = []
        self._breaks = list(breaks)

    async def open(self, pod_uid: str, request: LogRequest) -> AsyncIterator[bytes]:
        self.asked.append(request)
        left = self._breaks.pop(0) if self._breaks else None
        for number, line in enumerate(self.lines[-(request.tail_lines or 0) :]):
            stamp = f"2026-11-21T12:00:{number:02}"
            if request.since is not None and datetime.fromisoformat(f"{stamp}Z") < request.since:
                continue
            if left == 0:
                raise ConnectionResetError("as the test says")
            left = None if left is None else left - 1
            yield f"{stamp}.000000001Z ".encode() + line + b"\n"
