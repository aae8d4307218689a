"""kubeflow.org/v1alpha1 MXNetJob, the proposal's to Kubeflow: a map of replicas in lower case, and port 9092.

Its pods carry `job_type` and `kubeflow.org` as labels; `controller-uid` and `task_index` stand under the names of today
(`docs/decisions/0013`).
"""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.forms.form import Form, Note, Path, Spec, no_conflicts, no_words
from mxnet_operator.api.forms.list_spec import TRAINING
from mxnet_operator.api.forms.phases import counts_as_map
from mxnet_operator.api.forms.templates import port_of, port_path, with_port
from mxnet_operator.api.kinds import MXNETJOB as KIND

PORT: Final = 9092


def _to_v1(spec: Spec, note: Note) -> Spec:
    note(("spec", "jobMode"), "an MXNetJob always trains")
    note(("spec", "mxReplicaSpecs"), "was spec.replicaSpecs, with its types in lower case")
    return {"jobMode": TRAINING, "mxReplicaSpecs": dict(_replicas(spec["replicaSpecs"], note))}


def _replicas(specs: dict[str, Any], note: Note) -> Iterator[tuple[str, Any]]:
    for replica_type in names.REPLICA_TYPES:
        written = replica_type.lower()
        if written in specs:
            path = ("spec", "mxReplicaSpecs", replica_type)
            yield replica_type, _replica(specs[written], written, path, note)


def _replica(replica: dict[str, Any], written: str, path: Path, note: Note) -> dict[str, Any]:
    template = replica["template"]
    if port_of(template) is None:
        template = with_port(template, PORT)
        note((*path, "template", *port_path(template)), "was the form's default port")
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), "job_type": written, names.GROUP: ""}
    note((*path, "template", "metadata", "labels", "job_type"), "labels of an MXNetJob's pods")
    return {**replica, "template": {**template, "metadata": {**metadata, "labels": labels}}}


MXNETJOB: Final = Form(
    "mxnetjob", KIND, f"{KIND.api_version} {KIND.kind}", _to_v1, no_conflicts, no_words, counts_as_map
)
