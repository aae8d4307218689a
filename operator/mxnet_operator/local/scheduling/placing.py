"""Decides which gangs are placed on the one node, and puts into words what each of the others waits for.

Gangs are taken in order, and none passes another that waits for what both ask for: what the first ones are to have is
kept for them, so a large one gets its turn. `docs/decisions/gangs.md`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mxnet_operator.api.quantities import Resources, add, amount_text, pod_requests
from mxnet_operator.local.scheduling.gangs import Gang

Object = dict[str, Any]

_NOTHING: Final = Decimal(0)
_EXACT_BELOW: Final = 20
"""Number of jobs in front from which it is rounded down: a change of it is a write for each pod that waits."""


@dataclass(slots=True)
class Decision:
    """Decision on the pods that wait."""

    to_place: list[Object] = field(default_factory=list)
    """Pods for which there is room: whole gangs, at least the minimum of one, or more of one that has begun; in order.
    """
    words: dict[str, str] = field(default_factory=dict)
    """By a pod's uid, why it is not placed."""
    forming: set[str] = field(default_factory=set)
    """The uids of pods whose gang has not enough of its pods yet: commonly for a moment only."""


@dataclass(frozen=True, slots=True)
class Node:
    """The one node: what it offers to pods, and its labels."""

    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)


class _Waiting(NamedTuple):
    """Pod that waits, and what it asks for."""

    pod: Object
    asks: Resources

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])


def decide(
    gangs: Iterable[Gang], node: Node, free: Resources, blocked: Mapping[str, str] = MappingProxyType({})
) -> Decision:
    """Go through the gangs in their order once; `free` is what no pod has of what the node offers.

    `blocked` says by uid why a pod can't be placed on any node now, such as a claim that doesn't exist.
    """
    decision, left, kept = Decision(), dict(free), _Kept()
    for gang in gangs:
        fitting, never = _sorted_out(gang, node, blocked)
        decision.words.update(never)
        if len(never) == len(gang.waiting):
            continue
        if gang.needed > len(fitting):
            decision.forming.update(each.uid for each in fitting)
            _tell(decision, fitting, f"0 of {gang.size} can be placed: {_incomplete(gang)}")
            continue
        # A gang that has begun holds what it has whether the rest follows or not: each of its pods that fits goes.
        chosen = _choose(fitting, kept.without(left))
        if has_room := len(chosen) >= gang.needed:
            uids = {each.uid for each in chosen}
            decision.to_place += [pod for pod in gang.waiting if pod["metadata"]["uid"] in uids]
            left = _minus(left, _total(chosen))
            fitting = [each for each in fitting if each.uid not in uids]
        if fitting:
            fits = gang.placed + (len(chosen) if has_room else 0) + len(_choose(fitting, left))
            asked = _total(fitting if has_room else fitting[: gang.needed])
            _tell(decision, fitting, _wait(gang, fits, asked, left, kept))
            kept.add(gang, asked)
    return decision


class _Kept:
    """Room that is kept for gangs that wait."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._are_jobs = True
        self._amounts: Resources = {}

    @property
    def first(self) -> str:
        return next(iter(self._names))

    def without(self, free: Resources) -> Resources:
        return _minus(free, self._amounts)

    def add(self, gang: Gang, amounts: Resources) -> None:
        self._names[gang.name] = None
        self._are_jobs = self._are_jobs and gang.is_job
        self._amounts = add([self._amounts, amounts])

    def before(self) -> str:
        """Return in words how many wait already."""
        count = len(self._names)
        unit = 10 ** (len(str(count)) - 1) if count >= _EXACT_BELOW else 1
        many = f"{count // unit * unit}{' or more' if unit > 1 else ''}"
        what = "job" if self._are_jobs else "job or pod"
        return f"{many} {what}{'' if count == 1 else 's'} before it in the queue" if count else ""


def _incomplete(gang: Gang) -> str:
    if not gang.gated:
        return f"{len(gang.waiting)} of its pods exist so far"
    wait = "waits for its" if gang.gated == 1 else "wait for their"
    return f"{gang.gated} of its pods {wait} scheduling gates"


def _tell(decision: Decision, waiting: Iterable[_Waiting], why: str) -> None:
    decision.words.update((each.uid, why) for each in waiting)


def _sorted_out(gang: Gang, node: Node, blocked: Mapping[str, str]) -> tuple[list[_Waiting], dict[str, str]]:
    """Return the pods that the node could have if nobody else were there, and by uid why it can never have the others.

    The smallest come first, so that as many as possible are placed; of equal ones, the pods created first. All
    pods of a gang of which too few could be placed can never be.
    """
    never: dict[str, str] = {}
    waiting: list[_Waiting] = []
    for pod in gang.waiting:
        block = blocked.get(pod["metadata"]["uid"])
        if why := f"0/1 nodes are available: {block}." if block else _mismatch(pod, node):
            never[pod["metadata"]["uid"]] = why
        else:
            waiting.append(_Waiting(pod, pod_requests(pod["spec"])))
    if len(waiting) > 1:
        waiting.sort(key=lambda each: _share(each.asks, node))
    if gang.needed and (why := _why_never(gang, waiting, never, node)):
        return [], dict.fromkeys((pod["metadata"]["uid"] for pod in gang.waiting), why)
    for each in waiting:
        if why := _too_large("The pod" if gang.is_job else "It", each.asks, node):
            never[each.uid] = why
    return [each for each in waiting if each.uid not in never], never


def _why_never(gang: Gang, waiting: list[_Waiting], never: Mapping[str, str], node: Node) -> str:
    """Return why as many of a gang as it needs at once can never be placed on this node; empty if they can."""
    if gang.minimum > gang.size:
        return f"0 of {gang.size} can be placed: minAvailable is {gang.minimum}, and the job has {gang.size} pods"
    if gang.size - len(never) < gang.minimum:
        return next(iter(never.values()))
    to_come = gang.size - len(gang.waiting)
    return _too_large("The job" if gang.is_job else "It", _total(waiting[: max(0, gang.needed - to_come)]), node)


def _mismatch(pod: Object, node: Node) -> str:
    """Return why no node of this cluster suits the pod, whatever it asks for, in kube-scheduler's words; else empty."""
    spec = pod["spec"]
    # Affinity, taints and topology are not looked at: with one node they could only keep a pod waiting for ever.
    if any(node.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    if claims := spec.get("resourceClaims"):
        names = ", ".join(str(claim.get("name")) for claim in claims)
        return (
            f"0/1 nodes are available: 1 node(s) can't allocate resource claims ({names}). The local cluster has no"
            " drivers for them: ask for devices in resources.limits instead."
        )
    return ""


def _too_large(who: str, asked: Resources, node: Node) -> str:
    """Return why so much never fits the node, in kube-scheduler's words and with numbers; empty if it does."""
    short = _exceeded(asked, node.allocatable)
    if not short:
        return ""
    numbers = "; ".join(
        f"needs {amount_text(name, asked[name])} {name}, this cluster has "
        f"{amount_text(name, node.allocatable.get(name, _NOTHING))}"
        for name in short
    )
    return f"0/1 nodes are available: {_insufficient(short)}. {who} {numbers}."


def _wait(gang: Gang, fits: int, asked: Resources, left: Resources, kept: _Kept) -> str:
    """Say what a gang waits for that would fit the node if nobody else had anything of it.

    `fits` is how many of its pods have room, `asked` what those ask for that don't. A job's words begin as
    `plan.shortage.OF_A_GANG` has them: they are the same on each pod, and the job's own.
    """
    short, before = _exceeded(asked, left), kept.before()
    if not gang.is_job:
        why = f"0/1 nodes are available: {_insufficient(short or _exceeded(asked, kept.without(left)))}."
        return f"{why[:-1]}; {before}." if before else why
    if not short:
        return f"{fits} of {gang.size} can be placed, but {kept.first} comes first; {before}"
    missing = ", ".join(f"{amount_text(name, asked[name] - left.get(name, _NOTHING))} {name}" for name in short)
    why = f"{fits} of {gang.size} can be placed, missing {missing}"
    return f"{why}; {before}" if before else why


def _choose(waiting: Iterable[_Waiting], free: Resources) -> list[_Waiting]:
    """Return the pods that fit together, each one that fits beside those before it."""
    chosen = []
    for each in waiting:
        if not _exceeded(each.asks, free):
            free = _minus(free, each.asks)
            chosen.append(each)
    return chosen


def _share(asked: Resources, node: Node) -> Decimal:
    """Return how large a request is: the sum of its shares of what the node offers."""
    shares = (amount / node.allocatable[name] for name, amount in asked.items() if node.allocatable.get(name))
    return sum(shares, _NOTHING)


def _insufficient(names: Iterable[str]) -> str:
    return ", ".join(f"1 Insufficient {name}" for name in names)


def _total(waiting: Iterable[_Waiting]) -> Resources:
    return add(each.asks for each in waiting)


def _exceeded(asked: Resources, free: Resources) -> list[str]:
    return [name for name, amount in sorted(asked.items()) if amount > max(free.get(name, _NOTHING), _NOTHING)]


def _minus(free: Resources, taken: Resources) -> Resources:
    return {name: free.get(name, _NOTHING) - taken.get(name, _NOTHING) for name in {**free, **taken}}
