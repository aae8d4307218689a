"""Validation rules between the fields of an MXJob: each once, as CEL for the API server and as its Python twin.

A rule rejects only what training-operator 1.8.1 rejected or could never run, so that whatever ran there runs here. The
CEL goes into the CRD (`api/crd.py`), the twin serves `mxjob validate` and the local API server
(`api/validation.py`); `docs/decisions/` says why there are two and how they are kept equal, and what a rule costs.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.structural import invalid
from mxnet_operator.api.types import MAX_REPLICAS

_DNS_1035 = "^[a-z]([-a-z0-9]*[a-z0-9])?$"


class Sentence(msgspec.Struct, frozen=True, kw_only=True):
    """Message about the value at `at`, if present; a `*` stands for every key of a map or item of a list.

    `field` is the path below it that a message names, since that is what the user has to change; empty for itself.
    """

    at: tuple[str, ...]
    field: str = ""
    cel: str = ""
    """Expression of the API server; empty for what is rare, which `mxjob validate` and the controller check alone."""
    message: str
    words: Mapping[str, str] = {}
    """What the message goes on to say of each of these fields that the value has."""
    versions: tuple[str, ...] = ()
    """API versions that have the rule; all of them where there are none."""

    def about(self, value: Any) -> str:
        return self.message + "".join(f" {field} ({why})" for field, why in self.words.items() if field in value)


class Rule(Sentence, frozen=True, kw_only=True):
    """Rule for a value."""

    holds: Callable[[Any], bool]
    """Function that returns whether the value may be stored."""
    required: bool = False
    """Whether it says that a field is missing, which the API server words differently."""
    at_creation: bool = False
    """Whether it is for new objects only, as each rule at the root is: every write of the status changes the root, so
    that a job from before the rule could never be given one. Below it, Kubernetes accepts what an update leaves.
    The controller reports what an update breaks anew.
    """
    of_submission: bool = False
    """Whether a stored job that breaks the rule runs all the same: training-operator 1.8.1 ran it."""

    def detail(self, value: Any) -> str:
        """Message of the server for a value that violates it, which it shows unless that is an object or a list."""
        if self.required:
            return f"Required value: {self.about(value)}"
        if isinstance(value, dict | list):
            return f"Invalid value: {self.about(value)}"
        return invalid("", value, self.about(value)).detail


class TransitionRule(Sentence, frozen=True):
    """Rule for the change of a value; the server checks it only when an object is updated."""

    allows: Callable[[Any, Any], bool]
    """Function that returns whether the second value may replace the first."""


def _replicas(specs: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for replica_type, spec in specs.items():
        yield replica_type, spec.get("replicas", 1)


def names_fit(job: Any, replicas: Iterable[tuple[str, int]]) -> bool:
    """Return whether the names of all pods fit a DNS label; `replicas` are types and counts."""
    return all(
        len(job["metadata"]["name"]) + len(replica_type) + len(str(max(count - 1, 0))) + 2 <= names.MAX_NAME
        for replica_type, count in replicas
    )


def _types_differ(specs: Any) -> bool:
    lowered = [replica_type.lower() for replica_type in specs]
    return len(lowered) == len(set(lowered))


def _one_root(specs: Any) -> bool:
    return all(
        replicas <= 1 for replica_type, replicas in _replicas(specs) if names.canonical_type(replica_type) in _ROOTS
    )


def _servers_have_a_scheduler(specs: Any) -> bool:
    present = {names.canonical_type(name) for name, replicas in _replicas(specs) if replicas > 0}
    return names.SERVER not in present or names.SCHEDULER in present


_TYPES_IN_CEL = "[" + ", ".join(f"'{name.lower()}'" for name in names.REPLICA_TYPES) + "]"
_ROOTS = tuple(each.name for each in TYPES.values() if each.is_root)
_ROOTS_IN_CEL = "[" + ", ".join(f"'{name.lower()}'" for name in _ROOTS) + "]"
_COUNT = "self[t].?replicas.orValue(1)"

NAME_IS_DNS_LABEL = Rule(
    at=("metadata", "name"),
    cel=f"self.matches('{_DNS_1035}')",
    message=(
        "must start with a lower-case letter and consist of lower-case letters, digits and '-' (a DNS-1035 label)"
    ),
    holds=lambda name: re.fullmatch(_DNS_1035, name) is not None,
)
TOO_LONG = f"too long: NAME-TYPE-INDEX must have at most {names.MAX_NAME} characters"


_ALWAYS_FITS = names.MAX_NAME - max(map(len, names.REPLICA_TYPES)) - len(str(MAX_REPLICAS - 1)) - 2
"""Longest name of a job that fits whatever its replicas are."""


def names_of_map_fit(field: str) -> Rule:
    """Return the rule that the pods' names fit, where the replicas are a map at `spec.<field>`."""
    count = "m[t].?replicas.orValue(1)"
    last = f"string({count} > 0 ? {count} - 1 : 0)"
    return Rule(
        at=(),
        field=".metadata.name",
        cel=(
            f"size(self.metadata.name) <= {_ALWAYS_FITS} || [?self.spec.?{field}].all(m, "
            f"m.all(t, size(self.metadata.name + t + {last}) < {names.MAX_NAME - 1}))"
        ),
        message=TOO_LONG,
        holds=lambda job: names_fit(job, _replicas(job["spec"].get(field, {}))),
        at_creation=True,
    )


def main_container(*at: str) -> Rule:
    """Return the rule that the pod spec at a path has a container `mxnet`."""
    return Rule(
        at=(*at, "containers"),
        message=f"one of them must be named {names.CONTAINER}",
        holds=lambda containers: bool(names.main_container(containers)),
    )


def counts_of_map(field: str) -> tuple[Rule, ...]:
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
            message=NO_REPLICA,
            holds=lambda specs: any(replicas > 0 for _, replicas in _replicas(specs)),
        ),
        Rule(
            at=at,
            cel=(
                f"self.exists(t, t.lowerAscii() == 'scheduler' && {_COUNT} > 0) || "
                f"!self.exists(t, t.lowerAscii() == 'server' && {_COUNT} > 0)"
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
        holds=lambda specs: all(map(names.canonical_type, specs)),
    ),
    Rule(
        at=_MAP,
        message="a type is given twice, in different case",
        holds=_types_differ,
    ),
    *counts_of_map("mxReplicaSpecs"),
    main_container(*_MAP, "*", "template", "spec"),
    Rule(
        at=("spec", "runPolicy", "earlyStopping"),
        message="needs below, above or both",
        holds=lambda bounds: "below" in bounds or "above" in bounds,
    ),
)
"""Rules of v1; `api/formats` adds those of the older formats, and those for updates."""
