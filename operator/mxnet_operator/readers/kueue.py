"""Kueue's Workload as the API server has it: how a job's place in its queue stands, and where its pods may go.

Kueue's own integrations read it alike (sigs.k8s.io/kueue, pkg/controller/jobframework/reconciler.go).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from mxnet_operator.readers.pods import Wire

ADMITTED: Final = "Admitted"
EVICTED: Final = "Evicted"
FINISHED: Final = "Finished"
PODS_READY: Final = "PodsReady"
QUOTA_RESERVED: Final = "QuotaReserved"
REQUEUED: Final = "Requeued"

Pairs = tuple[tuple[str, str], ...]


class WorkloadCondition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A condition of a Workload; all of it, since one is changed by writing all of them.

    Its schema requires every field but the last, be a message empty.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int | msgspec.UnsetType = msgspec.UNSET


class Toleration(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A toleration of a pod."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Placement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Additions of Kueue to the pods of one type: the labels of the nodes that their quota is for, above all."""

    node_selector: Pairs = ()
    tolerations: tuple[Toleration, ...] = ()
    labels: Pairs = ()
    annotations: Pairs = ()
    scheduling_gates: tuple[str, ...] = ()


class PodSetUpdate(Wire, frozen=True):
    """Additions of an admission check to the pods of one type."""

    name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class AdmissionCheck(Wire, frozen=True):
    """The state of an admission check: what else than quota an admission waits for."""

    name: str = ""
    state: str = ""
    message: str = ""
    pod_set_updates: list[PodSetUpdate] | None = None


class Assignment(Wire, frozen=True):
    """The flavors from which the pods of one type take their resources."""

    name: str = ""
    flavors: dict[str, str] | None = None
    topology_assignment: Any = None


class _Admission(Wire, frozen=True):
    cluster_queue: str = ""
    pod_set_assignments: list[Assignment] | None = None


class WorkloadSpec(Wire, frozen=True):
    """Spec of a Workload."""

    active: bool = True


class WorkloadStatus(Wire, frozen=True):
    """Status of a Workload, as written by Kueue."""

    conditions: list[WorkloadCondition] | None = None
    admission: _Admission | None = None
    admission_checks: list[AdmissionCheck] | None = None


class ResourceFlavor(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A kind of nodes that quota is for; `problem` says why it can't be read."""

    name: str
    node_labels: Pairs = ()
    tolerations: tuple[Toleration, ...] = ()
    problem: str = ""


class QueuePriority(msgspec.Struct, frozen=True, gc=False):
    """The class by which a queue orders a job, and its value; without a name, that of the cluster's default class."""

    kind: Literal["WorkloadPriorityClass", "PriorityClass"]
    name: str
    value: int = 0
    problem: str = ""
    """Why it can't be read."""


def pairs(of: Mapping[str, str] | None) -> Pairs:
    """Turn a mapping into what can be compared and hashed."""
    return tuple(sorted((of or {}).items()))
