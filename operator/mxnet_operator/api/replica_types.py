"""Replica types, one row each: what the rules, the policies and the pods need to know of a type.

A new type is a row here. Whatever names a type by itself elsewhere has it from a document: ps-lite's `DMLC_*`, and the
`successPolicy` of the API.
"""

from typing import Final

import msgspec


class ReplicaType(msgspec.Struct, frozen=True, kw_only=True):
    """Replica type and its role in a job."""

    name: str
    """Name as the CRD spells it."""
    tunes: bool = False
    """Whether it takes part in tuning (MXTune), not in training."""
    is_root: bool = False
    """Whether all others connect to it: one replica at most, with a Service of its own, created last in a gang."""
    serves: bool = False
    """Whether it only serves others: it has no state to save, never exits by itself, and is deleted without grace."""
    works: bool = False
    """Whether it is what the others serve."""
    decides: bool = False
    """Whether its success is required for the job's, unless successPolicy says otherwise."""
    reports_result: bool = False
    """Whether its first replica's termination message is the job's result, and its log the one to read first."""
    fails_fast: bool = False
    """Whether a Python exception would hang in it, so that users are warned where it lacks the fail-fast hook."""
    computes: bool = False
    """Whether it runs models, and so may use a GPU: a root and ps-lite's servers never leave the host's memory."""
    ps_role: str = ""
    """Value of DMLC_ROLE; empty where `import mxnet` must not see any."""
    job_role: str = ""
    """Label `job-role` of its pods in training-operator 1.8.1: selectors in use rely on it."""


_TABLE: Final = (
    ReplicaType(name="Scheduler", is_root=True, serves=True, decides=True, ps_role="scheduler"),
    ReplicaType(name="Server", serves=True, ps_role="server", job_role="master"),
    ReplicaType(
        name="Worker", works=True, decides=True, reports_result=True, fails_fast=True, computes=True, ps_role="worker"
    ),
    ReplicaType(name="TunerTracker", tunes=True, is_root=True, serves=True),
    ReplicaType(name="TunerServer", tunes=True, serves=True, computes=True),
    ReplicaType(name="Tuner", tunes=True, works=True, decides=True, reports_result=True, computes=True),
)

TYPES: Final = {replica_type.name: replica_type for replica_type in _TABLE}
"""Replica types by name, in the order in which their pods are created: servers before their clients."""
