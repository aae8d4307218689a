"""A namespace of a test's own on the node, and what a test does there."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from guarded_program import GuardedProgram
from kubernetes_programs import MissingProgramError, kubectl
from real_node.node import RealNode
from waiting import MINUTES, SECONDS

from mxnet_operator.api.conditions import TERMINAL


@contextlib.contextmanager
def had_or_refused() -> Iterator[None]:
    """Skips the test where something of it can't be had here, or fails it where CI is set."""
    try:
        yield
    except MissingProgramError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))


class NodeWorld:
    """A namespace of a test's own on the node."""

    def __init__(self, node: RealNode, namespace: str) -> None:
        self.node = node
        self.namespace = namespace

    def kubectl(self, *words: object, text: str | None = None) -> str:
        """What kubectl prints."""
        return self.node.kubectl("--namespace", self.namespace, *words, text=text)

    def create(self, manifest: dict[str, Any]) -> None:
        """Create an object in the namespace."""
        metadata = {**manifest["metadata"], "namespace": self.namespace}
        self.kubectl("create", "-f", "-", text=json.dumps({**manifest, "metadata": metadata}))

    def claim(self, name: str) -> Path:
        """Make a claim that pods of any user may write to; its folder on the node."""
        folder = self.node.folder / f"{self.namespace}-{name}"
        folder.mkdir()
        folder.chmod(0o777)
        size = {"storage": "1Gi"}
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = {**common, "capacity": size, "hostPath": {"path": str(folder)}}
        claim = {**common, "volumeName": folder.name, "resources": {"requests": size}}
        for kind, called, spec in (
            ("PersistentVolume", folder.name, volume),
            ("PersistentVolumeClaim", name, claim),
        ):
            self.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": called}, "spec": spec})
        return folder

    def get(self, *words: object) -> dict[str, Any]:
        """An object, decoded."""
        return self.node.get("--namespace", self.namespace, *words)

    def wait(self, what: str, holds: str, *options: object, within: int = SECONDS) -> None:
        """Wait until `kubectl wait --for` says so."""
        self.node.wait(what, holds, "--namespace", self.namespace, *options, within=within)

    def state(self, job: str, state: str) -> dict[str, Any]:
        """A job's status, once it is in that state; before its end, it may train."""
        within = MINUTES if state in TERMINAL else SECONDS
        self.wait(f"mxjob/{job}", f"jsonpath={{.status.state}}={state}", within=within)
        found: dict[str, Any] = self.get("mxjob", job)["status"]
        return found

    def ended(self, job: str, state: str) -> str:
        """The message of the condition with which a job has ended."""
        conditions = self.state(job, state)["conditions"]
        found: str = next(each["message"] for each in conditions if each["type"] == state)
        return found

    def events(self, job: str, reason: str) -> list[str]:
        """The messages of a job's events of this reason."""
        selector = f"--field-selector=involvedObject.name={job},reason={reason}"
        return [each["message"] for each in self.get("events", selector)["items"]]

    @contextlib.contextmanager
    def follow(self, pod: str) -> Iterator[Iterable[str]]:
        """The lines of a pod's log as they come, until the context ends."""
        command = self.node.command(kubectl(), "--namespace", self.namespace, "logs", "--follow", pod)
        with GuardedProgram(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            yield process.stdout
            process.terminate()

    def pods(self, job: str) -> dict[str, dict[str, Any]]:
        """A job's pods by their names."""
        items = self.get("pods", "-l", f"training.kubeflow.org/job-name={job}")["items"]
        return {each["metadata"]["name"]: each for each in items}
