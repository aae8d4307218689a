"""Nodes of a job in one word, `runPolicy.placement`: the affinity that it adds to what the templates say.

Pack: Workers go on few nodes, where they talk to each other without a network; Servers on many, each with a network
card of its own to the Workers. Exclusive: all pods go on few nodes, on which no other job has any.
"""

from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob

_HOST: Final = "kubernetes.io/hostname"
_HEAVIEST: Final = 100
"""Weight of a preference, the largest that Kubernetes takes."""


def with_nodes(spec: dict[str, Any], job: MXJob, replica_type: str) -> dict[str, Any]:
    """Return a pod's spec with the affinity that runPolicy.placement means for this type, beside the template's own."""
    wish = job.spec.run_policy.placement
    row = TYPES[replica_type]
    of_job = {names.LABEL_JOB_UID: job.metadata.uid}
    of_type = {**of_job, names.LABEL_REPLICA_TYPE: replica_type.lower()}
    if wish == "Exclusive":
        packed = _with_term(spec, "podAffinity", _preferred(of_job))
        return _with_term(packed, "podAntiAffinity", _no_other_job(job))
    if wish == "Pack" and row.works:
        return _with_term(spec, "podAffinity", _preferred(of_type))
    if wish == "Pack" and row.serves and not row.is_root:
        return _with_term(spec, "podAntiAffinity", _preferred(of_type))
    return spec


def _preferred(labels: dict[str, str]) -> tuple[str, dict[str, Any]]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": _HOST}
    return "preferredDuringSchedulingIgnoredDuringExecution", {"weight": _HEAVIEST, "podAffinityTerm": term}


def _no_other_job(job: MXJob) -> tuple[str, dict[str, Any]]:
    others = [
        {"key": names.LABEL_JOB_UID, "operator": "Exists"},
        {"key": names.LABEL_JOB_UID, "operator": "NotIn", "values": [job.metadata.uid]},
    ]
    term = {"labelSelector": {"matchExpressions": others}, "namespaceSelector": {}, "topologyKey": _HOST}
    return "requiredDuringSchedulingIgnoredDuringExecution", term


def _with_term(spec: dict[str, Any], kind: str, term: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    affinity = spec.get("affinity") or {}
    own = (affinity.get(kind) or {}) if isinstance(affinity, dict) else None
    field, added = term
    terms = (own.get(field) or []) if isinstance(own, dict) else None
    if not isinstance(own, dict) or not isinstance(terms, list):
        return spec  # The API server rejects it, and the job says so.
    return {**spec, "affinity": {**affinity, kind: {**own, field: [*terms, added]}}}
