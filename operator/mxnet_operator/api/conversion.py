"""Conversion of a manifest of an older API version to v1: with the changes, without the server's own fields."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.formats.format import Path
from mxnet_operator.api.formats.mxjob import V1
from mxnet_operator.api.job_formats import format_of, spec_to_v1
from mxnet_operator.api.kinds import MXJOB

_OF_THE_SERVER: Final = (
    "clusterName",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_ENDING: Final = frozenset(
    {
        names.HOLDER_ANNOTATION,
        names.LEASE_DURATION_ANNOTATION,
        names.LEASE_RENEW_TIME_ANNOTATION,
        names.LEASE_ACTION_ANNOTATION,
        names.SUSPENDED_BY_AIRFLOW_ANNOTATION,
        names.STOP_ANNOTATION,
    }
)
"""Annotations that end a job, at once or when its lease runs out: a copy would end, too."""
_OF_KUBECTL: Final = "kubectl.kubernetes.io/last-applied-configuration"


class Remark(msgspec.Struct, frozen=True):
    """Reason why a field of the converted manifest differs from what was written."""

    path: Path
    text: str


class Conversion(msgspec.Struct, frozen=True):
    """Converted v1 manifest, with the changes."""

    manifest: dict[str, Any]
    remarks: tuple[Remark, ...]


def convert(manifest: dict[str, Any]) -> Conversion | None:
    """Return the v1 manifest of a valid job, ready to be created or to replace it; None if it is one already.

    Two manifests of one format that mean the same become the same; a converted one is not converted again.
    """
    job_format = format_of(manifest)
    if job_format is V1:
        return None
    kind = "" if manifest["kind"] == MXJOB.kind else f" {manifest['kind']}"
    remarks = [Remark(("apiVersion",), f"was {manifest['apiVersion']}{kind}")]
    spec = spec_to_v1(manifest, lambda path, why: remarks.append(Remark(path, why)))
    metadata = without_server_fields(manifest)["metadata"]
    annotations = {
        name: value for name, value in (metadata.pop("annotations", None) or {}).items() if name != _OF_KUBECTL
    }
    if annotations:
        metadata["annotations"] = annotations
    left_out = ["status"] if "status" in manifest else []
    left_out += [f"metadata.{name}" for name in _OF_THE_SERVER if name in manifest["metadata"]]
    if left_out:
        remarks.append(Remark(("metadata",), f"left out, since the server writes it: {', '.join(left_out)}"))
    header = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    return Conversion({**header, "metadata": metadata, "spec": spec}, tuple(remarks))


def without_server_fields(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without its status and the metadata that only the server sets, as `kubectl create` sends it.

    `kubectl get -o yaml` prints these fields; the server rejects a creation that names a resourceVersion. Who held or
    stopped the printed job doesn't hold or stop its copy.
    """
    kept = {name: value for name, value in manifest.items() if name != "status"}
    if isinstance(metadata := kept.get("metadata"), Mapping):
        kept["metadata"] = {name: value for name, value in metadata.items() if name not in _OF_THE_SERVER}
        if "uid" in metadata and isinstance(annotations := metadata.get("annotations"), Mapping):
            kept["metadata"].pop("annotations")
            if left := {name: value for name, value in annotations.items() if name not in _ENDING}:
                kept["metadata"]["annotations"] = left
    return kept
