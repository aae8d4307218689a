"""Specs with a list of replicas, `spec.replicaSpecs`, as three kinds have it with small differences."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.formats.format import Definition, Format, Note, Path, Spec
from mxnet_operator.api.formats.lists import SCHEDULER, chief_asked_for, type_of
from mxnet_operator.api.formats.phases import list_words, read_list_status
from mxnet_operator.api.formats.templates import port_conflicts, port_of, port_path, with_port, without
from mxnet_operator.api.structural import FieldError

TRAINING: Final = "MXTrain"
RESTARTED: Final = "ExitCode"
"""Default restartPolicy of fioravanzo.org and v1alpha1: replicas "are automatically restarted if they exit"."""


class ListDefaults(msgspec.Struct, frozen=True):
    """Differences between the list formats."""

    entry_type: str
    """Replica type of an entry that names none."""
    port_field: str
    port: int
    clean_pod_policy: str
    retryable: tuple[int, ...] = ()
    """Exit codes besides those of our own table (`api/exit_codes.py`)."""


def _to_v1(defaults: ListDefaults, spec: Spec, note: Note) -> Spec:
    mode = spec.get("jobMode")
    note(
        ("spec", "jobMode"),
        f"was {mode}: in v1 the replicas say so" if mode else "a job with a list of replicas trains",
    )
    specs = {}
    for entry in spec["replicaSpecs"]:
        name = names.canonical_type(type_of(entry, defaults.entry_type)) or ""
        if not entry.get("mxReplicaType"):
            note(("spec", "mxReplicaSpecs", name), "named no type: the format's default")
        specs[name] = _replica(entry, defaults, spec, ("spec", "mxReplicaSpecs", name), note)
    ordered = {name: specs[name] for name in names.REPLICA_TYPES if name in specs}
    note(("spec", "mxReplicaSpecs"), "was the list spec.replicaSpecs")
    for field in ("RuntimeId", "mxImage"):
        if field in spec:
            note(("spec", "mxReplicaSpecs"), f"{field} is left out: {_LEFT_OUT[field]}")
    return {
        "jobMode": TRAINING,
        "runPolicy": _run_policy(spec, defaults, specs, note),
        **_success_policy(spec, note),
        "mxReplicaSpecs": ordered,
    }


def _conflicts(defaults: ListDefaults, spec: Spec) -> Iterator[FieldError]:
    """Yield an error for each port that is given twice."""
    for position, entry in enumerate(spec["replicaSpecs"]):
        path = f"spec.replicaSpecs[{position}]"
        yield from port_conflicts(path, defaults.port_field, entry.get(defaults.port_field), entry["template"])


_LEFT_OUT: Final = {
    "RuntimeId": "the controller gives each job its own, see status and the pods' label",
    "mxImage": "it never had an effect, each container names its image",
}


def _run_policy(spec: Spec, defaults: ListDefaults, specs: dict[str, Any], note: Note) -> dict[str, Any]:
    written = spec.get("cleanupPodPolicy")
    clean = written or defaults.clean_pod_policy
    was = "was cleanupPodPolicy" if written else f"was the format's default, {clean}"
    note(("spec", "runPolicy", "cleanPodPolicy"), was)
    policy: dict[str, Any] = {"cleanPodPolicy": clean}
    if defaults.retryable and any(each["restartPolicy"] == RESTARTED for each in specs.values()):
        policy["exitCodes"] = {"retryable": list(defaults.retryable)}
        first, last = defaults.retryable[0], defaults.retryable[-1]
        note(("spec", "runPolicy", "exitCodes"), f"the format's table: {first} to {last} are retried, the others final")
    return policy


def _success_policy(spec: Spec, note: Note) -> dict[str, str]:
    chief = chief_asked_for(spec)
    if chief is None:
        return {}
    note(("spec", "successPolicy"), f"was terminationPolicy.chief.replicaName: {chief}")
    return {"successPolicy": "Scheduler" if chief == SCHEDULER else "AllWorkers"}


def _replica(entry: dict[str, Any], defaults: ListDefaults, spec: Spec, path: Path, note: Note) -> dict[str, Any]:
    template = entry["template"]
    restart = template["spec"].get("restartPolicy")
    policy = "Never" if restart == "Never" else RESTARTED
    where = f"was template.spec.restartPolicy: {restart}" if restart else "the format restarts what exits"
    if policy == RESTARTED:
        where += "; the exit code decides which exits are retried"
    note((*path, "restartPolicy"), where)
    template = without(template, "restartPolicy")
    scheduler = spec.get("schedulerName")
    if scheduler and "schedulerName" not in template["spec"]:
        template = {**template, "spec": {**template["spec"], "schedulerName": scheduler}}
        note((*path, "template", "spec", "schedulerName"), "was spec.schedulerName")
    if port_of(template) is None:
        port = entry.get(defaults.port_field)
        template = with_port(template, port or defaults.port)
        was = f"was {defaults.port_field}" if port else f"was the format's default {defaults.port_field}"
        note((*path, "template", *port_path(template)), was)
    replicas = {"replicas": entry["replicas"]} if "replicas" in entry else {}
    return {**replicas, "restartPolicy": policy, "template": template}


def list_format(
    name: str, definition: Definition, defaults: ListDefaults, *, type_field: str = "mx_replica_type"
) -> Format:
    """Return a list format with these defaults; `type_field` names a replica's type in its status."""
    return Format(
        name,
        definition,
        partial(_to_v1, defaults),
        read_list_status,
        partial(list_words, type_field),
        partial(_conflicts, defaults),
        has_runtime_id=True,
        has_phases=True,
    )
