"""Format kubeflow.org/v1alpha1 MXNetJob of the proposal to Kubeflow: a map of replicas in lower case, port 9092.

Its pods carry `job_type` and `kubeflow.org` as labels; `controller-uid` and `task_index` stand under the names of today
(`docs/decisions/api.md`).
"""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.formats.format import Definition, Format, Note, Path, Spec
from mxnet_operator.api.formats.list_spec import TRAINING
from mxnet_operator.api.formats.older_types import FLAT_FIELDS, FlatSpec, ListSpec, MapSpec, NetSpec
from mxnet_operator.api.formats.phases import counts_as_map
from mxnet_operator.api.formats.refusals import ENTRY, LIST, no_field
from mxnet_operator.api.formats.templates import port_of, port_path, with_port
from mxnet_operator.api.formats.transition_rules import COUNTS_OF_NET_STAY
from mxnet_operator.api.kind import Kind
from mxnet_operator.api.rules import NAME_IS_DNS_LABEL, Rule, counts_of_map, main_container, names_of_map_fit

KIND: Final = Kind(names.GROUP, "MXNetJob", "mxnetjobs", "mxnetjob", ("v1alpha1",), "v1alpha1")
"""Kind of the proposal to Kubeflow (examples/seeds/000-mxnetjob-proposal)."""
PORT: Final = 9092
_TYPES: Final = ("scheduler", "server", "worker")


def _rules() -> Iterator[Rule]:
    yield NAME_IS_DNS_LABEL
    yield names_of_map_fit("replicaSpecs")
    yield Rule(
        at=LIST,
        cel=f"self.all(t, t in {list(_TYPES)})",
        message=f"each key must be one of {', '.join(_TYPES)}, in lower case",
        holds=lambda specs: all(each in _TYPES for each in specs),
    )
    yield from counts_of_map("replicaSpecs")
    yield main_container(*ENTRY, "template", "spec")
    yield no_field("label", "is v1beta1's, of an MXJob", at=ENTRY)
    yield no_field("mxReplicaSpecs", "is called replicaSpecs in an MXNetJob")
    yield no_field("jobMode", "an MXNetJob has none: it always trains")
    for field in ("runPolicy", "successPolicy", *FLAT_FIELDS, "cleanupPodPolicy", "terminationPolicy"):
        yield no_field(field, f"an MXNetJob has none: `mxjob convert` makes it {names.API_VERSION}, which does")


_DEFINITION: Final = Definition(
    kind=KIND,
    spec=NetSpec,
    refused=(ListSpec, FlatSpec, MapSpec),
    rules=tuple(_rules()),
    transitions=(COUNTS_OF_NET_STAY,),
)


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
        note((*path, "template", *port_path(template)), "was the format's default port")
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), "job_type": written, names.GROUP: ""}
    note((*path, "template", "metadata", "labels", "job_type"), "labels of an MXNetJob's pods")
    return {**replica, "template": {**template, "metadata": {**metadata, "labels": labels}}}


MXNETJOB: Final = Format("mxnetjob", _DEFINITION, _to_v1, counts_as_map)
