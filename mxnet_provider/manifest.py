"""From what a DAG's author wrote, a manifest or builder arguments, to the MXJob to create."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from mxnet_operator.api import names
from mxnet_provider.exceptions import MXNetManifestError


def parse(manifest: Mapping[str, Any] | str) -> dict[str, Any]:
    """A manifest as a dict of the caller's own, from a dict or from the text of one YAML or JSON document.

    Raises MXNetManifestError where the text is not YAML or not one mapping.
    """
    if not isinstance(manifest, str):
        return copy.deepcopy(dict(manifest))
    try:
        documents = [document for document in yaml.safe_load_all(manifest) if document is not None]
    except yaml.YAMLError as e:
        raise MXNetManifestError(f"The manifest is not valid YAML: {e}") from e
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise MXNetManifestError(
            f"The manifest must be one MXJob, one YAML mapping; it has {len(documents)} documents"
            + "".join(f", the first a {type(document).__name__}" for document in documents[:1])
        )
    return documents[0]


def build(
    *,
    image: str,
    command: Sequence[str] | None,
    args: Sequence[str] | None,
    env: Mapping[str, str] | None,
    workers: int,
    servers: int,
    schedulers: int,
    resources: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """An MXTrain job whose replicas all run the same container; `resources` are the workers' alone."""
    container: dict[str, Any] = {"name": names.CONTAINER, "image": image}
    if command:
        container["command"] = list(command)
    if args:
        container["args"] = list(args)
    if env:
        container["env"] = [{"name": name, "value": str(value)} for name, value in env.items()]
    counts = {names.SCHEDULER: schedulers, names.SERVER: servers, names.WORKER: workers}
    specs = {}
    for replica_type, count in counts.items():
        own = copy.deepcopy(container)
        if resources and replica_type == names.WORKER:
            own["resources"] = copy.deepcopy(dict(resources))
        if count:
            specs[replica_type] = {"replicas": count, "template": {"spec": {"containers": [own]}}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": specs},
    }


def replica_counts(manifest: Mapping[str, Any]) -> dict[str, int]:
    """How many replicas of each type the manifest asks for; what is malformed is left to validation."""
    spec = manifest.get("spec")
    specs = spec.get("mxReplicaSpecs") if isinstance(spec, Mapping) else None
    if not isinstance(specs, Mapping):
        return {}
    counts = {}
    for replica_type, replica_spec in specs.items():
        count = replica_spec.get("replicas", 1) if isinstance(replica_spec, Mapping) else 1
        counts[str(replica_type)] = count if isinstance(count, int) else 1
    return counts


def metadata_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest's `metadata`, put there where it is missing.

    Raises MXNetManifestError where it is something else than a mapping.
    """
    metadata = manifest.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise MXNetManifestError(f"metadata: Invalid value: must be an object, is {metadata!r}")
    return metadata
