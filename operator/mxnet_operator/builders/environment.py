"""Environment variables by which the processes of a job find each other: DMLC_* for ps-lite, MX_CONFIG for scripts.

Exactly training-operator 1.8.1's (`docs/facts/training-operator.md`), but that a Tuner type gets no DMLC_ROLE: `import
mxnet` takes any role but worker for a server's and never returns.
"""

import json
from functools import lru_cache
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob, ReplicaSpec

_MX_CONFIG: Final = "MX_CONFIG"
_LONGEST_VARIABLE: Final = 128 * 1024
"""Maximum bytes of one argument or variable, name and final NUL included (Linux: MAX_ARG_STRLEN), else E2BIG."""
_REWRITTEN: Final = 64
"""Bytes left free: a local kubelet writes addresses in place of names, which may be a little longer."""
LONGEST_MX_CONFIG: Final = _LONGEST_VARIABLE - len(f"{_MX_CONFIG}=") - 1 - _REWRITTEN
"""Maximum bytes of MX_CONFIG's value, which is ASCII."""


_FIT_CHECKPOINT: Final = "{--model-prefix}{-rank}-{epoch}.params"
"""What `example/image-classification/common/fit.py` of Apache MXNet 1.x writes, and most scripts after its example."""
_FIT_ARGUMENTS: Final = ("--load-epoch", "{epoch}")


def environment(job: MXJob, replica_type: str, index: int, attempt: int = 0) -> dict[str, str]:
    specs = job.spec.mx_replica_specs
    has_scheduler = _count(specs, names.SCHEDULER) > 0
    common = _common_text(job)
    variables = {
        **({_MX_CONFIG: _mx_config(common, replica_type, index)} if common else {}),
        "DMLC_PS_ROOT_PORT": str(port_of(specs[names.SCHEDULER]) if has_scheduler else 0),
        "DMLC_PS_ROOT_URI": names.replica_name(job.metadata.name, names.SCHEDULER, 0) if has_scheduler else "",
        "DMLC_NUM_SERVER": str(_count(specs, names.SERVER)),
        "DMLC_NUM_WORKER": str(_count(specs, names.WORKER)),
        "DMLC_USE_KUBERNETES": "1",
    }
    if role := TYPES[replica_type].ps_role:
        variables["DMLC_ROLE"] = role
    if replica_type == names.WORKER:
        variables["DMLC_WORKER_ID"] = str(index)
        variables |= _for_the_hook(job, attempt)
    return variables


def _for_the_hook(job: MXJob, attempt: int) -> dict[str, str]:
    """Return the variables by which a Worker's hook (`builders/fail_fast`) is told what the job asks for."""
    policy, created = job.spec.run_policy, job.metadata.creation_timestamp
    variables = {} if policy.fail_fast else {"MXJOB_FAILFAST": "off"}
    if policy.stall_timeout_seconds is not None:
        variables["MXJOB_STALL_TIMEOUT"] = str(policy.stall_timeout_seconds)
    if policy.fail_on_divergence:
        variables["MXJOB_FAIL_ON_DIVERGENCE"] = "1"
    if (resume := policy.resume) is not None:
        variables["MXJOB_ATTEMPT"] = str(attempt)
        if attempt > 0:
            default = _FIT_ARGUMENTS if resume.checkpoint is None else ()
            args = default if resume.args is None else resume.args
            since = int(created.timestamp()) if created else 0
            asked = {"checkpoint": resume.checkpoint or _FIT_CHECKPOINT, "args": args, "since": since}
            variables["MXJOB_RESUME"] = json.dumps(asked)
    return variables


def has_mx_config(job: MXJob) -> bool:
    """Return whether the replicas of a job get MX_CONFIG: all of them, or none where the longest can't start.

    It names every replica, so a job of many, or of long names, can exceed what Linux takes as one variable.
    """
    return bool(_common_text(job))


def _mx_config(common: str, replica_type: str, index: int) -> str:
    """Return the value of MX_CONFIG: what all replicas of a job share, and the replica's own position."""
    return f'{{{common},"task":{_json({"type": replica_type.lower(), "index": index})}}}'


def _common_text(job: MXJob) -> str:
    """Return what all values of MX_CONFIG in a job share; empty where the longest of them can't start."""
    specs = job.spec.mx_replica_specs.items()
    return _text_of(
        job.metadata.name, tuple((name, each.replicas or 0, port_of(each), _key(each)) for name, each in specs)
    )


@lru_cache(maxsize=32)
def _text_of(job: str, types: tuple[tuple[str, int, int, str], ...]) -> str:
    """Return all addresses by type and the TVM keys by type, of types given by name, size, port and key.

    Built once for a job: it names every replica, and every replica gets it.
    """
    if sum(size * len(names.replica_name(job, each, 0)) for each, size, _, _ in types) > LONGEST_MX_CONFIG:
        return ""
    cluster = {
        each.lower(): [{"url": _address(job, each, index), "port": port} for index in range(size)]
        for each, size, port, _ in types
    }
    labels = {each.lower(): key for each, _, _, key in types}
    text = f'"cluster":{_json(cluster)},"labels":{_json(labels)}'
    longest, size = max(((each, size) for each, size, _, _ in types), key=lambda both: len(both[0]) + len(str(both[1])))
    return text if len(_mx_config(text, longest, max(size, 1) - 1)) <= LONGEST_MX_CONFIG else ""


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def port_of(spec: ReplicaSpec) -> int:
    main = names.main_container(spec.template["spec"]["containers"])
    return next(int(port["containerPort"]) for port in main["ports"] if port.get("name") == names.PORT_NAME)


def _address(job: str, replica_type: str, index: int) -> str:
    name = names.replica_name(job, replica_type, index)
    return name if TYPES[replica_type].is_root else f"{name}.{names.subdomain(job)}"


def _key(spec: ReplicaSpec) -> str:
    annotations = (spec.template.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(names.TUNER_KEY_ANNOTATION, ""))


def _count(specs: dict[str, ReplicaSpec], replica_type: str) -> int:
    return (specs[replica_type].replicas or 0) if replica_type in specs else 0
