"""Rules for updates of a stored job: in every format counts of replicas stay, unless the job is suspended.

A change of format alone is no change of counts: a job that its user rewrites as v1 is checked as a new manifest. A
finished job of v1 keeps the whole of its replicas' specs: they say what its result is the result of.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from mxnet_operator.api.conditions import TERMINAL
from mxnet_operator.api.formats.lists import counts, type_in_cel
from mxnet_operator.api.formats.refusals import LIST, SPEC
from mxnet_operator.api.rules import TransitionRule

_WHY: Final = "processes of MXNet can't join or leave a running job"


def _is_suspended(spec: Any) -> bool:
    return bool(spec.get("suspend") or spec.get("runPolicy", {}).get("suspend"))


def _suspended(spec: str) -> str:
    return f"{spec}.?suspend.orValue(false) || {spec}.?runPolicy.?suspend.orValue(false)"


def _count(entry: str) -> str:
    return f"{entry}.?replicas.orValue(1)"


def _counts(specs: Any) -> Iterable[tuple[str, int]]:
    return ((name, spec.get("replicas", 1)) for name, spec in specs.items())


def _equal(one: Iterable[tuple[str, int]], other: Iterable[tuple[str, int]]) -> bool:
    before, after = ({name.lower(): count for name, count in each if count} for each in (one, other))
    return before == after


def _map_stays(new: str, old: str) -> str:
    """Return CEL: every type with replicas in one map has as many in the other, in whatever case it is written.

    First what holds for every write of a status, with the fewest reads.
    """

    def within(one: str, other: str) -> str:
        equal = f"u.lowerAscii() == t.lowerAscii() && {_count(f'{other}[u]')} == {_count(f'{one}[t]')}"
        return f"{one}.all(t, {other}.exists(u, {equal}) || {_count(f'{one}[t]')} == 0)"

    unchanged = f"size({new}) == size({old}) && {new}.all(t, t in {old} && {new}[t].?replicas == {old}[t].?replicas)"
    return f"({unchanged}) || ({within(new, old)} && {within(old, new)})"


COUNTS_STAY: Final = TransitionRule(
    at=SPEC,
    field=".mxReplicaSpecs",
    cel=(
        f"[?self.?mxReplicaSpecs].all(a, [?oldSelf.?mxReplicaSpecs].all(b, {_map_stays('a', 'b')}))"
        f" || {_suspended('self')} || {_suspended('oldSelf')}"
    ),
    message=f"numbers of replicas can be changed only while runPolicy.suspend is true: {_WHY}",
    allows=lambda old, new: (
        any(_is_suspended(spec) or "mxReplicaSpecs" not in spec for spec in (old, new))
        or _equal(*(_counts(spec["mxReplicaSpecs"]) for spec in (old, new)))
    ),
)


def _no_change(cel: str, read: Callable[[Any], Iterable[tuple[str, int]]]) -> TransitionRule:
    return TransitionRule(
        at=LIST,
        cel=cel,
        message=f"numbers of replicas can't be changed: {_WHY}",
        allows=lambda old, new: _equal(read(old), read(new)),
    )


COUNTS_OF_NET_STAY: Final = _no_change(_map_stays("self", "oldSelf"), _counts)


def counts_of_list_stay(default: str) -> TransitionRule:
    """Return the rule for a list of replicas, in which an entry without a type is of the `default` one."""

    def same(one: str, other: str) -> str:
        equal = f"{type_in_cel('u', default)} == {type_in_cel('r', default)} && {_count('u')} == {_count('r')}"
        return f"{one}.all(r, {other}.exists(u, {equal}) || {_count('r')} == 0)"

    return _no_change(
        f"{same('self', 'oldSelf')} && {same('oldSelf', 'self')}", lambda entries: counts(entries, default)
    )


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
