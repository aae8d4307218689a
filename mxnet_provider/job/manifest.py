"""From the manifest that a DAG's author wrote to the MXJob to create."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mxnet_operator.api import job_formats, names
from mxnet_operator.api.bundled_objects import job_and_objects
from mxnet_operator.api.conversion import convert
from mxnet_operator.api.manifest_text import ManifestError, jsonable, read
from mxnet_operator.api.validation import unknown_fields
from mxnet_operator.description.plain import plain
from mxnet_provider.exceptions import MXNetManifestError


def parse(manifest: Mapping[str, Any] | str) -> dict[str, Any]:
    return parse_all(manifest)[0]


def parse_all(manifest: Mapping[str, Any] | str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the MXJob of a manifest, a dict or YAML or JSON text, and the objects beside it in a text.

    Raises MXNetManifestError where it holds what JSON can't say, or is not one job.
    """
    try:
        if not isinstance(manifest, str):
            return dict(jsonable(plain(manifest))), []
        documents = [document for document, _ in read(manifest)]
        position, objects = job_and_objects(documents)
    except ManifestError as e:
        raise MXNetManifestError(f"The manifest can't be read: {e}") from e
    if not isinstance(job := documents[position], dict):
        raise MXNetManifestError(f"The manifest must be one MXJob, is {_named(job)}")
    return job, objects


def _named(document: Any) -> str:
    if not isinstance(document, str):
        return f"a {type(document).__name__}"
    if "://" in document:
        return f"the address {document!r}: nothing is downloaded; give a file, YAML text or a mapping"
    return (
        f"the text {document!r}: a file is named by a text without templates that ends in .yaml, .yml or .json, "
        "relative to the DAG's folder or to template_searchpath, or absolute"
    )


def mistakes(manifest: Mapping[str, Any], *, allow_unknown: bool = False) -> list[str]:
    """List what is wrong with a manifest of any API version, in its own words; empty if it means a job that can run."""
    asked = dict(manifest)
    errors = job_formats.submission_errors(asked)
    return [error.message for error in (*errors, *(() if allow_unknown else unknown_fields(asked)))]


def as_v1(manifest: dict[str, Any], tell: Callable[[str], None], *, allow_unknown: bool = False) -> dict[str, Any]:
    """Convert a manifest of an older API version to v1; a v1 manifest is returned as it is, with its mistakes.

    `tell` is called for each field that is not what was written, and why: the controller, which sees v1 only, can't.
    Raises MXNetManifestError for mistakes in one of an older version, in the words of that version.
    """
    metadata = manifest.get("metadata") or {}
    # The operator gives names: one is missing here by right.
    named = {**manifest, "metadata": {"name": "job", **metadata}} if isinstance(metadata, dict) else manifest
    found = mistakes(named, allow_unknown=allow_unknown)
    if (manifest.get("apiVersion"), manifest.get("kind")) == (names.API_VERSION, names.KIND) and found:
        return manifest  # with its name it is looked through again
    refuse(found)
    if (conversion := convert(named)) is None:
        return manifest
    for remark in conversion.remarks:
        tell(f"{'.'.join(remark.path)}: {remark.text}")
    meant = conversion.manifest
    if "name" not in metadata:
        del meant["metadata"]["name"]
    return meant


def refuse(found: Sequence[str]) -> None:
    """Raise MXNetManifestError with every mistake that was found, one to a line, if there is any."""
    if found:
        raise MXNetManifestError("The MXJob is invalid:\n" + "\n".join(f"- {mistake}" for mistake in found))


def replica_counts(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Return how many replicas of each type the manifest asks for; what is malformed is left to validation."""
    specs = _replica_specs(manifest).items()
    asked = {str(key): spec.get("replicas", 1) if isinstance(spec, Mapping) else 1 for key, spec in specs}
    return {replica_type: count if isinstance(count, int) else 1 for replica_type, count in asked.items()}


def label_templates(manifest: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    """Put labels on the pods too, so that a selector by DAG finds them; what is malformed is left to validation."""
    for template in _templates(manifest):
        metadata = template.setdefault("metadata", {})
        if isinstance(metadata, dict):
            add_labels(metadata, labels)


def add_labels(metadata: dict[str, Any], labels: Mapping[str, str]) -> None:
    given = metadata.get("labels") or {}
    if isinstance(given, Mapping):
        metadata["labels"] = {**given, **labels}


def set_grace_period(manifest: Mapping[str, Any], seconds: int) -> None:
    for template in _templates(manifest):
        spec = template.setdefault("spec", {})
        if isinstance(spec, dict):
            spec["terminationGracePeriodSeconds"] = seconds


def set_deadline(manifest: Mapping[str, Any], seconds: int) -> None:
    """Set how long the job may be active, where the manifest doesn't say; what is malformed is left to validation."""
    spec = manifest.get("spec")
    policy = spec.get("runPolicy") or {} if isinstance(spec, dict) else None
    if isinstance(spec, dict) and isinstance(policy, dict) and policy.get("activeDeadlineSeconds") is None:
        spec["runPolicy"] = {**policy, "activeDeadlineSeconds": seconds}


def as_tuning(servers: Mapping[str, Any], others: Mapping[str, Any], *, key: str) -> dict[str, Any]:
    """Build the tuning job whose servers are one training job's Workers, and whose tracker and tuner are another's."""
    worker, lean = (job["spec"]["mxReplicaSpecs"][names.WORKER] for job in (servers, others))
    specs = {
        names.TUNER_TRACKER: {**copy.deepcopy(lean), "replicas": 1},
        names.TUNER_SERVER: copy.deepcopy(worker),
        names.TUNER: {**copy.deepcopy(lean), "replicas": 1},
    }
    for spec in specs.values():
        metadata = spec["template"].setdefault("metadata", {})
        metadata.setdefault("annotations", {}).setdefault(names.TUNER_KEY_ANNOTATION, key)
    return {**servers, "spec": {**servers["spec"], "jobMode": "MXTune", "mxReplicaSpecs": specs}}


def add_environment(manifest: Mapping[str, Any], variables: Mapping[str, str]) -> None:
    """Set variables in every `mxnet` container; the manifest's own win, and what is malformed is left to validation."""
    for template in _templates(manifest) if variables else ():
        spec = template.get("spec")
        containers = spec.get("containers") if isinstance(spec, dict) else None
        for container in containers if isinstance(containers, list) else ():
            own = (container.get("env") or []) if isinstance(container, dict) else None
            if isinstance(own, list) and container.get("name") == names.CONTAINER:
                known = [each.get("name") for each in own if isinstance(each, Mapping)]
                # First, so that the manifest's own may refer to them.
                container["env"] = [
                    *({"name": name, "value": value} for name, value in variables.items() if name not in known),
                    *own,
                ]


def _templates(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = [spec.get("template") for spec in _replica_specs(manifest).values() if isinstance(spec, Mapping)]
    return [template for template in found if isinstance(template, dict)]


def _replica_specs(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = manifest.get("spec")
    specs = spec.get("mxReplicaSpecs") if isinstance(spec, Mapping) else None
    return specs if isinstance(specs, Mapping) else {}
