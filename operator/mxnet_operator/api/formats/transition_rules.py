"""Rules for updates of a stored job: in every format counts of replicas stay, unless the job is suspended.

A change of format alone is no change of counts: a job that its user rewrites as v1 is checked as a new manifest. A
finished job of v1 keeps the whole of its replicas' specs: they say what its result is the result of.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from mxnet_operator.api.conditions import TERMINAL
from mxnet_operator.api.formats.list_rules import names_of_list_fit
from mxnet_operator.api.formats.lists import counts, type_in_cel
from mxnet_operator.api.formats.refusals import SPEC
from mxnet_operator.api.rules import TransitionRule, kept_by_updates, names_of_map_fit

_WHY: Final = "processes of MXNet can't join or leave a running job"


def _stay(
    field: str, same: Callable[[str, str], str], read: Callable[[Any], Iterable[tuple[str, int]]]
) -> TransitionRule:
    """Return the rule for replicas at `spec.<field>`, from CEL that compares two of them and a reader of counts."""

    def allows(old: Any, new: Any) -> bool:
        if any(_is_suspended(spec) or field not in spec for spec in (old, new)):
            return True
        before, after = ({name.lower(): count for name, count in read(spec[field]) if count} for spec in (old, new))
        return before == after

    suspends = field == "mxReplicaSpecs"
    either = "".join(f" || {_suspended(spec)}" for spec in ("self", "oldSelf")) if suspends else ""
    return TransitionRule(
        at=SPEC,
        field=f".{field}",
        cel=(f"[?self.?{field}].all(a, [?oldSelf.?{field}].all(b, {same('a', 'b')} && {same('b', 'a')})){either}"),
        message=(
            f"numbers of replicas can be changed only while runPolicy.suspend is true: {_WHY}"
            if suspends
            else f"numbers of replicas can't be changed: {_WHY}"
        ),
        allows=allows,
    )


def _is_suspended(spec: Any) -> bool:
    return bool(spec.get("suspend") or spec.get("runPolicy", {}).get("suspend"))


def _suspended(spec: str) -> str:
    return f"{spec}.?suspend.orValue(false) || {spec}.?runPolicy.?suspend.orValue(false)"


def _count(entry: str) -> str:
    return f"{entry}.?replicas.orValue(1)"


def counts_of_map_stay(field: str) -> TransitionRule:

    def same(one: str, other: str) -> str:
        """Return CEL: every type with replicas in one map has as many in the other, in whatever case it is written."""
        equal = f"{_count(f'{other}[u]')} == {_count(f'{one}[t]')}"
        exists = f"{other}.exists(u, u.lowerAscii() == t.lowerAscii() && {equal})"
        quick = f"(t in {other} && {_count(f'{one}[t]')} == {_count(f'{other}[t]')})"
        return f"{one}.all(t, {quick} || {exists} || {_count(f'{one}[t]')} == 0)"

    return _stay(field, same, lambda specs: ((name, spec.get("replicas", 1)) for name, spec in specs.items()))


def counts_of_list_stay(default: str) -> TransitionRule:
    """Return the rule for a list of replicas, in which an entry without a type is of the `default` one."""

    def same(one: str, other: str) -> str:
        equal = f"{type_in_cel('u', default)} == {type_in_cel('r', default)} && {_count('u')} == {_count('r')}"
        return f"{one}.all(r, {other}.exists(u, {equal}) || {_count('r')} == 0)"

    return _stay("replicaSpecs", same, lambda entries: counts(entries, default))


def names_of_map_stay(field: str) -> TransitionRule:
    """Return the rule that the pods' names go on fitting, where the replicas are a map at `spec.<field>`."""
    return kept_by_updates(names_of_map_fit(field), field)


def names_of_list_stay(default: str) -> TransitionRule:
    """Return the rule that the pods' names go on fitting, where the replicas are a list."""
    return kept_by_updates(names_of_list_fit(default), "replicaSpecs")


def _finished_stays(old: Any, new: Any) -> bool:
    if (old.get("status") or {}).get("state") not in TERMINAL:
        return True
    before, after = (job["spec"].get("mxReplicaSpecs") for job in (old, new))
    return before is None or after is None or bool(before == after)


FINISHED_STAYS: Final = TransitionRule(
    at=(),
    field=".spec.mxReplicaSpecs",
    cel=(
        f"!(oldSelf.?status.?state.orValue('') in {sorted(TERMINAL)}) || "
        "!has(self.spec.mxReplicaSpecs) || !has(oldSelf.spec.mxReplicaSpecs) || "
        "self.spec.mxReplicaSpecs == oldSelf.spec.mxReplicaSpecs"
    ),
    message="the job is finished, and its result is that of the replicas that it had: delete it, or make another job",
    allows=_finished_stays,
)
