"""All rules of each kind's definition."""

from collections.abc import Iterator, Mapping
from typing import Final

from mxnet_operator.api import names
from mxnet_operator.api.kinds import FIORAVANZO, MLKUBE, MXJOB, MXNETJOB, Kind
from mxnet_operator.api.older.list_rules import chief_rules, has_a_scheduler, list_rules, mode_rules
from mxnet_operator.api.older.mixing_rules import rules_between_forms
from mxnet_operator.api.older.refusals import ENTRY, LIST, ONLY_V1, no_field
from mxnet_operator.api.older.types import FLAT_FIELDS
from mxnet_operator.api.rules import NAME_IS_DNS_LABEL, RULES, Rule, counts_of_map, main_container, names_of_map_fit

_NET_TYPES: Final = ("scheduler", "server", "worker")


def rules_of(kind: Kind) -> tuple[Rule, ...]:
    """Every rule of a kind's definition."""
    return _RULES[kind.name]


def _mxnetjob() -> Iterator[Rule]:
    yield NAME_IS_DNS_LABEL
    yield names_of_map_fit("replicaSpecs")
    yield Rule(
        at=LIST,
        field="",
        cel=f"self.all(t, t in {list(_NET_TYPES)})",
        message=f"each key must be one of {', '.join(_NET_TYPES)}, in lower case",
        holds=lambda specs: all(each in _NET_TYPES for each in specs),
    )
    yield from counts_of_map("replicaSpecs")
    yield main_container(*ENTRY, "template", "spec")
    yield no_field("label", "is v1beta1's, of an MXJob", at=ENTRY)
    yield no_field("mxReplicaSpecs", "is called replicaSpecs in an MXNetJob")
    yield no_field("jobMode", "an MXNetJob has none: it always trains")
    for field in ("runPolicy", "successPolicy", *FLAT_FIELDS, "cleanupPodPolicy", "terminationPolicy"):
        yield no_field(field, f"an MXNetJob has none: `mxjob convert` makes it {names.API_VERSION}, which does")


def _only_lists(group: str, *, port: str, not_port: str, without: tuple[str, ...]) -> Iterator[Rule]:
    """What a kind that has only a list refuses; `without` are fields that the other list forms have."""
    yield no_field("mxReplicaSpecs", f"{group} has the list replicaSpecs")
    for field in ("runPolicy", "successPolicy", *FLAT_FIELDS):
        yield no_field(field, ONLY_V1)
    for field in without:
        yield no_field(field, f"{group} has none: `mxjob convert` makes it {names.API_VERSION}")
    yield no_field(not_port, f"is called {port} in {group}", at=ENTRY)


_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    MXJOB.name: (
        *RULES,
        *list_rules(MXJOB.group),
        has_a_scheduler(MXJOB.group),
        *chief_rules(MXJOB.group),
        *rules_between_forms(),
    ),
    MXNETJOB.name: tuple(_mxnetjob()),
    FIORAVANZO.name: (
        NAME_IS_DNS_LABEL,
        *list_rules(FIORAVANZO.group),
        has_a_scheduler(FIORAVANZO.group),
        *chief_rules(FIORAVANZO.group),
        *_only_lists(FIORAVANZO.group, port="mxPort", not_port="PsRootPort", without=("jobMode", "cleanupPodPolicy")),
    ),
    MLKUBE.name: (
        NAME_IS_DNS_LABEL,
        *list_rules(MLKUBE.group),
        *mode_rules(MLKUBE.group),
        *_only_lists(
            MLKUBE.group,
            port="PsRootPort",
            not_port="mxPort",
            without=("mxImage", "terminationPolicy", "cleanupPodPolicy", "schedulerName"),
        ),
    ),
}
