"""What must hold between the fields of an MXJob: each rule once, as CEL for the API server and as its Python twin.

A rule refuses only what training-operator 1.8.1 refused or could never run, so that whatever ran there runs here. The
CEL goes into the CRD (`api/crd.py`), the twin serves `mxjob validate` and the local API server
(`api/validation.py`); `docs/decisions/` says why there are two and how they are kept equal.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mxnet_operator.api import names

_DNS_1035 = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
_GENERATED_SUFFIX = 5
"""Characters that the API server appends to generateName."""


class Sentence(msgspec.Struct, frozen=True):
    """What is said about the value at `at`; a `*` in the path stands for every key of a map.

    `field` is the path below it that a message names, since that is what the user has to change.
    """

    at: tuple[str, ...]
    field: str
    cel: str
    message: str


class Rule(Sentence, frozen=True):
    """What a value must be."""

    holds: Callable[[Any], bool]


class TransitionRule(Sentence, frozen=True):
    """What a value may become; the server looks at it only when an object is updated."""

    allows: Callable[[Any, Any], bool]
    """Whether the second value may take the place of the first."""


def _replicas(specs: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for replica_type, spec in specs.items():
        yield replica_type, spec.get("replicas", 1)


def _name_is_dns_label(job: Any) -> bool:
    metadata = job.get("metadata", {})
    name = metadata.get("name") or metadata.get("generateName", "") + "x"
    return re.fullmatch(_DNS_1035, name) is not None


def _names_fit(job: Any) -> bool:
    metadata = job.get("metadata", {})
    length = len(metadata.get("name") or metadata.get("generateName", "") + "x" * _GENERATED_SUFFIX)
    return all(
        length + len(replica_type) + len(str(max(replicas - 1, 0))) + 2 <= names.MAX_NAME
        for replica_type, replicas in _replicas(job["spec"]["mxReplicaSpecs"])
    )


def _types_are_known(spec: Any) -> bool:
    return all(names.canonical_type(replica_type) for replica_type in spec["mxReplicaSpecs"])


def _types_differ(spec: Any) -> bool:
    lowered = [replica_type.lower() for replica_type in spec["mxReplicaSpecs"]]
    return len(lowered) == len(set(lowered))


def _one_root(spec: Any) -> bool:
    return all(
        replicas <= 1
        for replica_type, replicas in _replicas(spec["mxReplicaSpecs"])
        if names.canonical_type(replica_type) in names.ROOT_TYPES
    )


def _has_a_replica(spec: Any) -> bool:
    return any(replicas > 0 for _, replicas in _replicas(spec["mxReplicaSpecs"]))


def _servers_have_a_scheduler(spec: Any) -> bool:
    count = {names.canonical_type(name): replicas for name, replicas in _replicas(spec["mxReplicaSpecs"])}
    return count.get(names.SERVER, 0) == 0 or count.get(names.SCHEDULER, 0) > 0


def _has_main_container(pod_spec: Any) -> bool:
    return any(container["name"] == names.CONTAINER for container in pod_spec["containers"])


def _counts_stay_unless_suspended(old: Any, new: Any) -> bool:
    if any(spec.get("runPolicy", {}).get("suspend") for spec in (old, new)):
        return True
    before, after = (
        {replica_type.lower(): count for replica_type, count in _replicas(spec["mxReplicaSpecs"]) if count}
        for spec in (old, new)
    )
    return before == after


_TYPES_IN_CEL = "[" + ", ".join(f"'{name.lower()}'" for name in names.REPLICA_TYPES) + "]"
_ROOTS_IN_CEL = "[" + ", ".join(f"'{name.lower()}'" for name in names.ROOT_TYPES) + "]"
_COUNT = "(has({specs}[t].replicas) ? {specs}[t].replicas : 1)"
_SPEC_COUNT = _COUNT.format(specs="self.mxReplicaSpecs")
_JOB_COUNT = _COUNT.format(specs="self.spec.mxReplicaSpecs")


def _suspended(spec: str) -> str:
    return f"(has({spec}.runPolicy) && has({spec}.runPolicy.suspend) && {spec}.runPolicy.suspend)"


def _each_count_in(one: str, other: str) -> str:
    """CEL: every type with replicas in one spec has as many in the other, in whatever case it is written."""
    of_one, of_other = _COUNT.format(specs=f"{one}.mxReplicaSpecs"), _COUNT.format(specs=f"{other}.mxReplicaSpecs")
    of_other = of_other.replace("[t]", "[u]")
    same = f"{other}.mxReplicaSpecs.exists(u, u.lowerAscii() == t.lowerAscii() && {of_other} == {of_one})"
    return f"{one}.mxReplicaSpecs.all(t, {of_one} == 0 || {same})"


RULES: tuple[Rule, ...] = (
    Rule(
        at=(),
        field=".metadata.name",
        cel=f"self.metadata.name.matches('{_DNS_1035}')",
        message=(
            "must start with a lower-case letter and consist of lower-case letters, digits and '-' (a DNS-1035 label)"
        ),
        holds=_name_is_dns_label,
    ),
    Rule(
        at=(),
        field=".metadata.name",
        cel=(
            "self.spec.mxReplicaSpecs.all(t, size(self.metadata.name) + size(t) + "
            f"size(string({_JOB_COUNT} > 0 ? {_JOB_COUNT} - 1 : 0)) + 2 <= {names.MAX_NAME})"
        ),
        message=f"too long: <name>-<type>-<index> must have at most {names.MAX_NAME} characters",
        holds=_names_fit,
    ),
    Rule(
        at=("spec",),
        field=".mxReplicaSpecs",
        cel=f"self.mxReplicaSpecs.all(t, t.lowerAscii() in {_TYPES_IN_CEL})",
        message=f"each key must be one of {', '.join(names.REPLICA_TYPES)}",
        holds=_types_are_known,
    ),
    Rule(
        at=("spec",),
        field=".mxReplicaSpecs",
        cel="self.mxReplicaSpecs.all(t, self.mxReplicaSpecs.exists_one(u, u.lowerAscii() == t.lowerAscii()))",
        message="a type is given twice, in different case",
        holds=_types_differ,
    ),
    Rule(
        at=("spec",),
        field=".mxReplicaSpecs",
        cel=f"self.mxReplicaSpecs.all(t, !(t.lowerAscii() in {_ROOTS_IN_CEL}) || {_SPEC_COUNT} <= 1)",
        message=f"{' and '.join(names.ROOT_TYPES)} can have one replica only",
        holds=_one_root,
    ),
    Rule(
        at=("spec",),
        field=".mxReplicaSpecs",
        cel=f"self.mxReplicaSpecs.exists(t, {_SPEC_COUNT} > 0)",
        message="at least one replica is needed",
        holds=_has_a_replica,
    ),
    Rule(
        at=("spec",),
        field=".mxReplicaSpecs",
        cel=(
            f"!self.mxReplicaSpecs.exists(t, t.lowerAscii() == 'server' && {_SPEC_COUNT} > 0) || "
            f"self.mxReplicaSpecs.exists(t, t.lowerAscii() == 'scheduler' && {_SPEC_COUNT} > 0)"
        ),
        message="a Server needs a Scheduler to register with",
        holds=_servers_have_a_scheduler,
    ),
    Rule(
        at=("spec", "mxReplicaSpecs", "*", "template", "spec"),
        field=".containers",
        cel=f"self.containers.exists(c, c.name == '{names.CONTAINER}')",
        message=f"one of them must be named {names.CONTAINER}",
        holds=_has_main_container,
    ),
)

TRANSITION_RULES: tuple[TransitionRule, ...] = (
    TransitionRule(
        at=("spec",),
        field=".mxReplicaSpecs",
        cel=(
            f"{_suspended('self')} || {_suspended('oldSelf')} || "
            f"({_each_count_in('self', 'oldSelf')} && {_each_count_in('oldSelf', 'self')})"
        ),
        message=(
            "numbers of replicas can be changed only while runPolicy.suspend is true: processes of MXNet can't join or "
            "leave a running job"
        ),
        allows=_counts_stay_unless_suspended,
    ),
)
