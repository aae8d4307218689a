"""The MXJob that a step applies: from a few words, with the name, labels and namespace that tie it to its workflow."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hera.expr._node import Node
from hera.workflows import Parameter
from hera.workflows.models import Parameter as ModelParameter
from msgspec import structs

from mxnet_argo.hera_objects import in_kubernetes_words
from mxnet_argo.rendering import leaves
from mxnet_argo.values import Value, word
from mxnet_operator.api import names
from mxnet_operator.description import DescriptionError, MXJobDescription, to_manifest
from mxnet_operator.readers.argo_workflow import WORKFLOW_LABEL

WORKFLOW_UID_LABEL: Final = "mxjob.kubeflow.org/workflow-uid"
"""On the job: by it the exit handler finds the jobs of its run, and no other's."""
_REMEDY: Final = (
    ': what Argo fills in is integer("x"), number("x"), data("x") (JSON) or text("x") of an input, and of anything else'
    ' integer(expression("workflow.parameters.x")) and the like, all in mxnet_argo'
)
OWNER: Final = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "name": word("workflow.name"),
    "uid": word("workflow.uid"),
    "controller": True,
}
"""Written here, not by Argo's setOwnerReference: that writes the manifest anew, without the escapes of its values, and
replaces tags in it once more (tests/argo/test_argo_steps.py, tags within tags)."""

DIGEST: Final = 12
"""Characters of the hash: 48 bits."""
PREFIX: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
"""What a job's name may begin with."""


@dataclass(frozen=True, kw_only=True)
class MXJobSpec(MXJobDescription):
    """Description of a step's job, with the fields of every other door; a value may be one of `mxnet_argo.values`.

    Hera's own objects are taken, too: `Env` and its like, volumes (with their `mount_path`), and `Resources`.
    Name and namespace are the step's to give.
    """

    def __post_init__(self) -> None:
        for name, value in in_kubernetes_words(vars(self)).items():
            object.__setattr__(self, name, value)
        try:
            super().__post_init__()
        except DescriptionError as error:
            of_argo = {path for path, leaf in leaves(vars(self)) if _is_of_argo(leaf)}
            told = [structs.replace(e, detail=e.detail + _REMEDY) if e.path in of_argo else e for e in error.problems]
            raise DescriptionError(told) from None

    def to_dict(self) -> dict[str, Any]:
        spec: dict[str, Any] = to_manifest(self)["spec"]
        return spec


def _is_of_argo(value: Any) -> bool:
    return isinstance(value, Node | Parameter | ModelParameter) or (isinstance(value, str) and "{{" in value)


def job_manifest(given: Mapping[str, Any], name: str | Value) -> dict[str, Any]:
    """Return the whole manifest of a job: `given` has its spec, and perhaps labels and annotations."""
    metadata = given.get("metadata") or {}
    workflow = word("workflow.name")
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
            "ownerReferences": [OWNER],
        },
        "spec": {
            **given["spec"],
            "mxReplicaSpecs": {
                replica_type: _labelled(spec, workflow if isinstance(name, Value) else "workflow")
                for replica_type, spec in (given["spec"].get("mxReplicaSpecs") or {}).items()
            },
        },
    }


def _labelled(spec: Any, workflow: str | Value) -> Any:
    """Return a replica's spec whose pods carry the workflow's name; what isn't one is left to validation."""
    if not isinstance(spec, Mapping) or not isinstance(spec.get("template"), Mapping):
        return spec
    metadata = spec["template"].get("metadata") or {}
    labels = (metadata.get("labels") or {}) if isinstance(metadata, Mapping) else None
    if not isinstance(labels, Mapping):
        return spec
    labels = {**labels, WORKFLOW_LABEL: workflow}
    return {**spec, "template": {**spec["template"], "metadata": {**metadata, "labels": labels}}}


def job_name(prefix: str) -> Value:
    """Return `<prefix>-<hash>`: the same for every attempt at a step, and for no other step, item, run or arguments.

    Argo's `node.name` is that of the retried node, without the attempt's number, and has the item of a fan-out in it;
    the workflow's uid makes another run's jobs others (`docs/facts/argo.md`, retries). The workflow's arguments, as
    they were written, change with `argo retry -p` only; the step's own inputs are evaluated again for each attempt,
    and may differ.
    """
    return f"{prefix}-" + hashed()


def hashed() -> Value:
    what = 'workflow.uid + "/" + node.name + "/" + toJson(workflow.parameters.json)'
    return word(f"sprig.trunc({DIGEST}, sprig.sha256sum({what}))")


def check_prefix(prefix: str) -> None:
    """Reject what can't begin a job's name, a DNS-1035 label as the names of Services; its length is checked later."""
    if not re.fullmatch(PREFIX, prefix):
        raise ValueError(
            f"{prefix!r} can't begin the name of an MXJob: small letters, digits and -, beginning with a letter and"
            " ending with a letter or digit. Give one as prefix"
        )
