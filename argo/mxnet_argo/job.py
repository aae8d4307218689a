"""The MXJob that a step applies: from a few words, with the name, labels and namespace that tie it to its workflow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mxnet_argo.values import Value, one_if_any, word
from mxnet_operator.api import names
from mxnet_operator.api.argo_workflow import WORKFLOW_LABEL

WORKFLOW_UID_LABEL: Final = "mxjob.kubeflow.org/workflow-uid"
"""On the job: by it the exit handler finds the jobs of its run, and no other's."""
_OWNER: Final = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
"""Written here, not by Argo's setOwnerReference: that writes the manifest anew, without the escapes of its values, and
replaces tags in it once more (tests/argo/test_argo_steps.py, tags within tags)."""


@dataclass(frozen=True, kw_only=True)
class MXJobSpec:
    """A training of one image: every replica runs the same command, as MXNet's roles do.

    Args:
        image: the image of all replicas.
        command: the command of all replicas, a list, or `data("command")`.
        args: its arguments.
        env: variables of every replica, by name; or `data(...)` with a list of Kubernetes' EnvVars.
        workers: how many train.
        servers: how many keep parameters; with 0 there is no scheduler either, and workers train on their own.
        resources: requests and limits of each worker, as Kubernetes writes them.
        restart_policy: Never, OnFailure, Always or ExitCode.
        run_policy: fields of spec.runPolicy.
    """

    image: str | Value
    command: Sequence[str | Value] | Value
    args: Sequence[str | Value] | Value = ()
    env: Mapping[str, str | Value] | Value = field(default_factory=dict)
    workers: int | Value = 1
    servers: int | Value = 1
    resources: Mapping[str, Any] | Value | None = None
    restart_policy: str | Value = "ExitCode"
    run_policy: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The spec of the MXJob."""
        replicas: dict[str, Any] = {}
        if self.servers != 0:
            replicas[names.SCHEDULER] = self._replica(one_if_any(self.servers))
            replicas[names.SERVER] = self._replica(self.servers)
        replicas[names.WORKER] = self._replica(self.workers, resources=self.resources)
        return {"jobMode": "MXTrain", "runPolicy": dict(self.run_policy), "mxReplicaSpecs": replicas}

    def _replica(self, count: int | Value, resources: Mapping[str, Any] | Value | None = None) -> dict[str, Any]:
        container: dict[str, Any] = {"name": names.CONTAINER, "image": self.image, "command": _list(self.command)}
        if self.args:
            container["args"] = _list(self.args)
        if isinstance(self.env, Value):
            container["env"] = self.env
        elif self.env:
            container["env"] = [{"name": name, "value": value} for name, value in self.env.items()]
        if resources:
            container["resources"] = resources if isinstance(resources, Value) else dict(resources)
        return {
            "replicas": count,
            "restartPolicy": self.restart_policy,
            "template": {"spec": {"containers": [container]}},
        }


def job_manifest(given: Mapping[str, Any], name: str | Value) -> dict[str, Any]:
    """The whole manifest of a job: `given` has its spec, and perhaps labels and annotations."""
    metadata = given.get("metadata") or {}
    workflow = word("workflow.name")
    owner = {**_OWNER, "name": workflow, "uid": word("workflow.uid"), "controller": True}
    return {
        "apiVersion": given.get("apiVersion", names.API_VERSION),
        "kind": given.get("kind", names.KIND),
        "metadata": {
            **metadata,
            "name": name,
            "namespace": word("workflow.namespace") if isinstance(name, Value) else "namespace",
            "labels": {
                **(metadata.get("labels") or {}),
                WORKFLOW_LABEL: workflow,
                WORKFLOW_UID_LABEL: word("workflow.uid"),
            },
            "ownerReferences": [owner],
        },
        "spec": {
            **given["spec"],
            "mxReplicaSpecs": {
                replica_type: _labelled(spec, workflow if isinstance(name, Value) else "workflow")
                for replica_type, spec in given["spec"].get("mxReplicaSpecs", {}).items()
            },
        },
    }


def _labelled(spec: Any, workflow: str | Value) -> Any:
    """A replica's spec whose pods carry the workflow's name; what isn't one is left to validation."""
    if not isinstance(spec, Mapping) or not isinstance(spec.get("template"), Mapping):
        return spec
    metadata = spec["template"].get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), WORKFLOW_LABEL: workflow}
    return {**spec, "template": {**spec["template"], "metadata": {**metadata, "labels": labels}}}


def _list(values: Sequence[str | Value] | Value) -> Any:
    return values if isinstance(values, Value) else list(values)


__all__ = ["MXJobSpec"]
