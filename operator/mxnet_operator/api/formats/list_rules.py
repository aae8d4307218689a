"""Rules for a list of replicas, as kubeflow.org/v1alpha1, fioravanzo.org and mxnet.mlkube.io have it."""

from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.formats.lists import (
    DIST,
    LOCAL,
    SCHEDULER,
    SERVER,
    WORKER,
    chief_of,
    count_of,
    counts,
    type_in_cel,
    type_of,
)
from mxnet_operator.api.formats.older_types import FLAT_FIELDS
from mxnet_operator.api.formats.refusals import ENTRY, LIST, ONLY_V1, SPEC, no_field
from mxnet_operator.api.rules import (
    NO_REPLICA,
    NO_SCHEDULER,
    TOO_LONG,
    Rule,
    main_container,
    names_fit,
)

_COUNT: Final = "r.?replicas.orValue(1)"


def list_rules(default: str) -> tuple[Rule, ...]:
    """Return the rules for a list of replicas in any of its kinds; an entry without a type is of the `default` one."""
    kind = type_in_cel("r", default)

    def differ(entries: Any) -> bool:
        types = [type_of(entry, default) for entry in entries]
        return len(types) == len(set(types))

    def servers_have_a_scheduler(entries: Any) -> bool:
        return count_of(entries, SERVER, default) == 0 or count_of(entries, SCHEDULER, default) > 0

    return (
        names_of_list_fit(default),
        Rule(
            at=LIST,
            cel=f"self.all(r, self.exists_one(u, {type_in_cel('u', default)} == {kind}))",
            message=f"a type is given twice: give it one entry (an entry without mxReplicaType is {default})",
            holds=differ,
        ),
        Rule(
            at=LIST,
            cel=f"self.all(r, {kind} != '{SCHEDULER}' || {_COUNT} <= 1)",
            message=f"{SCHEDULER} can have one replica only",
            holds=lambda entries: all(count <= 1 for each, count in counts(entries, default) if each == SCHEDULER),
        ),
        Rule(
            at=LIST,
            cel=f"self.exists(r, {_COUNT} > 0)",
            message=NO_REPLICA,
            holds=lambda entries: any(each > 0 for _, each in counts(entries, default)),
        ),
        Rule(
            at=LIST,
            cel=(
                f"!self.exists(r, {kind} == '{SERVER}' && {_COUNT} > 0) || "
                f"self.exists(r, {kind} == '{SCHEDULER}' && {_COUNT} > 0)"
            ),
            message=NO_SCHEDULER,
            holds=servers_have_a_scheduler,
        ),
        main_container(*ENTRY, "template", "spec"),
        no_field("restartPolicy", "stands in the template here: template.spec.restartPolicy", at=ENTRY),
        no_field(
            "label", f"is v1beta1's; the key is template.metadata.annotations[{names.TUNER_KEY_ANNOTATION}]", at=ENTRY
        ),
    )


def names_of_list_fit(default: str) -> Rule:
    """Return the rule that the pods' names fit, where the replicas are a list."""
    return Rule(
        at=(),
        field=".metadata.name",
        message=TOO_LONG,
        holds=lambda job: names_fit(job, counts(job["spec"].get("replicaSpecs", ()), default)),
        at_creation=True,
    )


def has_a_scheduler(default: str) -> Rule:
    """Return the documents' rule that a job must have 1 and only 1 scheduler; a local one has none."""

    def has_one(spec: Any) -> bool:
        entries = spec.get("replicaSpecs")
        return entries is None or spec.get("jobMode") == LOCAL or count_of(entries, SCHEDULER, default) > 0

    return Rule(
        at=SPEC,
        field=".replicaSpecs",
        message=f"a job must have 1 and only 1 {SCHEDULER}, unless its jobMode is {LOCAL}",
        holds=has_one,
    )


def chief_rules(default: str) -> tuple[Rule, ...]:
    at = (*SPEC, "terminationPolicy", "chief")

    def is_there(spec: Any) -> bool:
        chief = chief_of(spec)
        return "replicaSpecs" not in spec or chief is None or count_of(spec["replicaSpecs"], chief, default) > 0

    return (
        Rule(
            at=at,
            field=".replicaName",
            cel=f"!has(self.replicaName) || self.replicaName != '{SERVER}'",
            message=f"a {SERVER} never ends by itself: write {SCHEDULER} or {WORKER}",
            holds=lambda value: value.get("replicaName") != SERVER,
        ),
        Rule(
            at=at,
            field=".replicaIndex",
            cel="!has(self.replicaIndex) || self.replicaIndex == 0",
            message=f"must be 0: there is one {SCHEDULER}, and of {WORKER} all are waited for",
            holds=lambda value: value.get("replicaIndex", 0) == 0,
        ),
        Rule(
            at=SPEC,
            field=".terminationPolicy.chief",
            message="there is no replica of the chief's type",
            holds=is_there,
        ),
    )


def mode_rules(default: str) -> tuple[Rule, ...]:
    """Return the rules that deepinsight itself validated: its modes local and dist (`pkg/spec/mx_job.go`)."""
    kind = type_in_cel("r", default)

    def local_is_a_worker(spec: Any) -> bool:
        return spec["jobMode"] != LOCAL or all(
            each == WORKER and count <= 1 for each, count in counts(spec["replicaSpecs"], default)
        )

    def dist_has_all(spec: Any) -> bool:
        types = {type_of(entry, default) for entry in spec["replicaSpecs"]}
        return spec["jobMode"] != DIST or types == {SCHEDULER, SERVER, WORKER}

    return (
        Rule(
            at=SPEC,
            field=".jobMode",
            cel=f"self.jobMode in ['{DIST}', '{LOCAL}']",
            message=f"must be {DIST} or {LOCAL}",
            holds=lambda spec: spec["jobMode"] in {DIST, LOCAL},
        ),
        Rule(
            at=SPEC,
            field=".replicaSpecs",
            cel=f"self.jobMode != '{LOCAL}' || self.replicaSpecs.all(r, {kind} == '{WORKER}' && {_COUNT} <= 1)",
            message=f"jobMode {LOCAL} has one {WORKER} and nothing else",
            holds=local_is_a_worker,
        ),
        Rule(
            at=SPEC,
            field=".replicaSpecs",
            cel=(
                f"self.jobMode != '{DIST}' || ['{SCHEDULER}', '{SERVER}', '{WORKER}'].all(t, "
                f"self.replicaSpecs.exists(r, {kind} == t))"
            ),
            message=f"jobMode {DIST} needs {SCHEDULER}, {SERVER} and {WORKER}",
            holds=dist_has_all,
        ),
    )


def only_lists(group: str, *, port: str, not_port: str, without: tuple[str, ...]) -> Iterator[Rule]:
    """Yield the rules of a kind that has only a list; `without` are fields that the other list formats have."""
    yield no_field("mxReplicaSpecs", f"{group} has the list replicaSpecs")
    for field in ("runPolicy", "successPolicy", *FLAT_FIELDS):
        yield no_field(field, ONLY_V1)
    for field in without:
        yield no_field(field, f"{group} has none: `mxjob convert` makes it {names.API_VERSION}")
    yield no_field(not_port, f"is called {port} in {group}", at=ENTRY)
