"""Validation rules between the fields of an MXJob: each once, as CEL for the API server and as its Python twin.

A rule rejects only what training-operator 1.8.1 rejected or could never run, so that whatever ran there runs here. The
CEL goes into the CRD (`api/crd.py`), the twin serves `mxjob validate` and the local API server
(`api/validation.py`); `docs/decisions/` says why there are two and how they are kept equal.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES

_DNS_1035 = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
_GENERATED_SUFFIX = 5
"""Characters that the API server appends to generateName."""


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """Message about the value at `at`, if present; a `*` stands for every key of a map or item of a list.

    `field` is the path below it that a message names, since that is what the user has to change; empty for itself.
    """

    at: tuple[str, ...]
    field: str = ""
    cel: str
    message: str


class Rule(Sentence, frozen=True, kw_only=True):
    """Rule for a value."""

    holds: Callable[[Any], bool]
    required: bool = False
    """Whether it says that a field is missing, which the API server words differently."""
    at_creation: bool = False
    """Whether it is for new objects only, as what it is about may not be mendable.

    Kubernetes doesn't check again what an update leaves as it is, but for rules at the root, which each write of the
    status changes: a job from before such a rule could never be given a status. What an update can break anew needs
    `kept_by_updates` besides.
    """
    of_submission: bool = False
    """Whether a stored job that breaks the rule runs all the same: training-operator 1.8.1 ran it."""

    @property
    def detail(self) -> str:
        """Message of the server for a value that violates it."""
        return f"Required value: {self.message}" if self.required else f"Invalid value: {self.message}"

    def permits(self, value: Any, *, is_update: bool = False) -> bool:
        """Return whether the value may be stored."""
        return (self.at_creation and is_update) or self.holds(value)


class TransitionRule(Sentence, frozen=True):
    """Rule for the change of a value; the server checks it only when an object is updated."""

    allows: Callable[[Any, Any], bool]
    """Function that returns whether the second value may replace the first."""


def kept_by_updates(rule: Rule, field: str) -> TransitionRule:
    """Return the rule that an update which changes `spec.<field>` keeps a rule `at_creation`.

    It is a rule of its own since the server can't bound the cost of what a rule for new objects walks in the stored one
    (`docs/facts/kubernetes.md`).
    """
    return TransitionRule(
        at=rule.at,
        field=f".spec.{field}",
        cel=f"{rule.cel} || (has(oldSelf.spec.{field}) && self.spec.{field} == oldSelf.spec.{field})",
        message=rule.message,
        # The comparison first: a status may be written to a job that an older CRD took malformed.
        allows=lambda old, new: new["spec"].get(field) == old["spec"].get(field) or rule.holds(new),
    )


def _replicas(specs: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for replica_type, spec in specs.items():
        yield replica_type, spec.get("replicas", 1)


def name_is_dns_label(job: Any) -> bool:
    """Return whether the name that the job has, or will be given, is a DNS-1035 label."""
    metadata = job.get("metadata", {})
    name = metadata.get("name") or metadata.get("generateName", "") + "x"
    return re.fullmatch(_DNS_1035, name) is not None


def names_fit(job: Any, replicas: Iterable[tuple[str, int]]) -> bool:
    """Return whether the names of all pods fit a DNS label; `replicas` are types and counts."""
    metadata = job.get("metadata", {})
    length = len(metadata.get("name") or metadata.get("generateName", "") + "x" * _GENERATED_SUFFIX)
    return all(
        length + len(replica_type) + len(str(max(count - 1, 0))) + 2 <= names.MAX_NAME
        for replica_type, count in replicas
    )


def _types_are_known(specs: Any) -> bool:
    return all(names.canonical_type(replica_type) for replica_type in specs)


def _types_differ(specs: Any) -> bool:
    lowered = [replica_type.lower() for replica_type in specs]
    return len(lowered) == len(set(lowered))


def _one_root(specs: Any) -> bool:
    return all(
        replicas <= 1 for replica_type, replicas in _replicas(specs) if names.canonical_type(replica_type) in _ROOTS
    )


def _has_a_replica(specs: Any) -> bool:
    return any(replicas > 0 for _, replicas in _replicas(specs))


def _servers_have_a_scheduler(specs: Any) -> bool:
    present = {names.canonical_type(name) for name, replicas in _replicas(specs) if replicas > 0}
    return names.SERVER not in present or names.SCHEDULER in present


def _has_main_container(pod_spec: Any) -> bool:
    return bool(names.main_container(pod_spec["containers"]))


_TYPES_IN_CEL = "[" + ", ".join(f"'{name.lower()}'" for name in names.REPLICA_TYPES) + "]"
_ROOTS = tuple(each.name for each in TYPES.values() if each.is_root)
_ROOTS_IN_CEL = "[" + ", ".join(f"'{name.lower()}'" for name in _ROOTS) + "]"
_COUNT = "(has(self[t].replicas) ? self[t].replicas : 1)"

NAME_IS_DNS_LABEL = Rule(
    at=(),
    field=".metadata.name",
    cel=f"self.metadata.name.matches('{_DNS_1035}')",
    message=(
        "must start with a lower-case letter and consist of lower-case letters, digits and '-' (a DNS-1035 label)"
    ),
    holds=name_is_dns_label,
    at_creation=True,
)
TOO_LONG = f"too long: NAME-TYPE-INDEX must have at most {names.MAX_NAME} characters"


def last_index_in_cel(entry: str) -> str:
    """Return the CEL expression for the length of the last index of an entry, which is 0 where it has no replica.

    It is short, since the CRD has it in each rule of each version, and has to fit into an annotation.
    """
    return f"size(string(has({entry}.replicas) && {entry}.replicas > 0 ? {entry}.replicas - 1 : 0))"


def names_of_map_fit(field: str) -> Rule:
    """Return the rule that the pods' names fit, where the replicas are a map at `spec.<field>`."""
    specs = f"self.spec.{field}"
    return Rule(
        at=(),
        field=".metadata.name",
        cel=(
            f"!has({specs}) || {specs}.all(t, "
            f"size(self.metadata.name + t) + {last_index_in_cel(f'{specs}[t]')} < {names.MAX_NAME - 1})"
        ),
        message=TOO_LONG,
        holds=lambda job: names_fit(job, _replicas(job["spec"].get(field, {}))),
        at_creation=True,
    )


def main_container(*at: str) -> Rule:
    """Return the rule that the pod spec at a path has a container `mxnet`."""
    return Rule(
        at=at,
        field=".containers",
        cel=f"self.containers.exists(c, c.name == '{names.CONTAINER}')",
        message=f"one of them must be named {names.CONTAINER}",
        holds=_has_main_container,
    )


def counts_of_map(field: str) -> tuple[Rule, ...]:
    """Return the rules for the counts of replicas, where they are a map at `spec.<field>`."""
    at = ("spec", field)
    return (
        Rule(
            at=at,
            cel=f"self.all(t, !(t.lowerAscii() in {_ROOTS_IN_CEL}) || {_COUNT} <= 1)",
            message=f"{' and '.join(_ROOTS)} can have one replica only",
            holds=_one_root,
        ),
        Rule(
            at=at,
            cel=f"self.exists(t, {_COUNT} > 0)",
            message=NO_REPLICA,
            holds=_has_a_replica,
        ),
        Rule(
            at=at,
            cel=(
                f"!self.exists(t, t.lowerAscii() == 'server' && {_COUNT} > 0) || "
                f"self.exists(t, t.lowerAscii() == 'scheduler' && {_COUNT} > 0)"
            ),
            message=NO_SCHEDULER,
            holds=_servers_have_a_scheduler,
        ),
    )


NO_REPLICA = "at least one replica is needed"
NO_SCHEDULER = "a Server needs a Scheduler to register with"
_MAP = ("spec", "mxReplicaSpecs")

RULES: tuple[Rule, ...] = (
    NAME_IS_DNS_LABEL,
    names_of_map_fit("mxReplicaSpecs"),
    Rule(
        at=_MAP,
        cel=f"self.all(t, t.lowerAscii() in {_TYPES_IN_CEL})",
        message=f"each key must be one of {', '.join(names.REPLICA_TYPES)}",
        holds=_types_are_known,
    ),
    Rule(
        at=_MAP,
        cel="self.all(t, self.exists_one(u, u.lowerAscii() == t.lowerAscii()))",
        message="a type is given twice, in different case",
        holds=_types_differ,
    ),
    *counts_of_map("mxReplicaSpecs"),
    main_container(*_MAP, "*", "template", "spec"),
)
"""Rules of v1; `api/formats` adds those of the older formats, and those for updates."""
