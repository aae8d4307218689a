"""Manifests of several documents: one job, and the objects that are created before it.

The objects are applied and stay: a claim may hold the trained model, and the job of a retry needs them again.
"""

from collections.abc import Sequence
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.conversion import without_server_fields
from mxnet_operator.api.kinds import ALL
from mxnet_operator.api.manifest_text import ManifestError

Object = dict[str, Any]

PLURALS: Final = {
    "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Secret": "secrets",
    "Service": "services",
}
"""Plural of each kind, of the core API, that may stand beside a job."""


def is_job(content: Any) -> bool:
    """Whether a document is a job; one without a kind counts as a job, so that the missing kind is reported."""
    kind = content.get("kind") if isinstance(content, dict) else None
    return kind is None or (isinstance(kind, str) and kind.lower() in {each.kind.lower() for each in ALL})


def job_and_objects(documents: Sequence[Any]) -> tuple[int, list[Object]]:
    """Return the position of the one job in a manifest's documents, and the objects beside it.

    A document that is alone is the job, whatever it is: its mistakes are found where a job is validated.

    Raises:
        ManifestError: there is no job, or several, or an object that can't be created with a job.
    """
    if len(documents) == 1:
        return 0, []
    jobs = [position for position, each in enumerate(documents) if is_job(each)]
    if len(jobs) != 1:
        raise ManifestError(f"expected one {names.KIND}, found {len(jobs)} in {len(documents)} documents")
    return jobs[0], [_checked(each) for position, each in enumerate(documents) if position != jobs[0]]


def _checked(content: Any) -> Object:
    kind, version = content.get("kind"), content.get("apiVersion")
    if kind not in PLURALS or version != "v1":
        raise ManifestError(
            f"{version} {kind} can't be created with a job, only {', '.join(PLURALS)} of v1: "
            "create it before, with kubectl apply -f, and leave it out"
        )
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or not (isinstance(metadata.get("name"), str) and metadata["name"]):
        raise ManifestError(f"metadata.name of a {kind}: Required value")
    return without_server_fields(content)
