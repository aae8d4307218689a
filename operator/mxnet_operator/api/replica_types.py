"""The replica types, a row each: what the rules, the policies and the pods have to know of a type.

A new type is a row here. Whatever names a type by itself elsewhere has it from a document: ps-lite's `DMLC_*`, and the
`successPolicy` of the API.
"""

from typing import Final

import msgspec


class ReplicaType(msgspec.Struct, frozen=True, kw_only=True):
    """What a type of replica is for."""

    name: str
    """As the CRD spells it."""
    tunes: bool = False
    """Whether it takes part in tuning (MXTune), not in training."""
    is_root: bool = False
    """Whether all others connect to it: one replica at most, with a Service of its own, created last in a gang."""
    serves: bool = False
    """Whether it has nothing to do or to save but for others: it is deleted without grace, and never ends by itself."""
    works: bool = False
    """Whether it is what the others serve."""
    decides: bool = False
    """Whether the job succeeds only when it has, as long as no successPolicy says otherwise."""
    reports_result: bool = False
    """Whether what its first replica leaves behind is the job's result, and its log the one to look at."""
    fails_fast: bool = False
    """Whether a Python that raises would hang in it, so that it gets the fail-fast hook."""
    ps_role: str = ""
    """Its DMLC_ROLE; empty where `import mxnet` must not see any."""
    job_role: str = ""
    """training-operator 1.8.1's label `job-role` of its pods: selectors in use rely on it."""


_TABLE: Final = (
    ReplicaType(name="Scheduler", is_root=True, serves=True, decides=True, ps_role="scheduler"),
    ReplicaType(name="Server", serves=True, ps_role="server", job_role="master"),
    ReplicaType(name="Worker", works=True, decides=True, reports_result=True, fails_fast=True, ps_role="worker"),
    ReplicaType(name="TunerTracker", tunes=True, is_root=True, serves=True),
    ReplicaType(name="TunerServer", tunes=True, serves=True),
    ReplicaType(name="Tuner", tunes=True, works=True, decides=True, reports_result=True),
)

TYPES: Final = {replica_type.name: replica_type for replica_type in _TABLE}
"""All types by name, in the order in which their pods are made: who is waited for comes first."""
