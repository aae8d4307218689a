"""The gangs among the pods of a cluster: the pods that start together or not at all, read from the pods themselves."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mxnet_operator.api import names
from mxnet_operator.readers.pods import ENDED

Object = dict[str, Any]

_GANG: Final = re.compile(
    r"(?P<name>[a-z0-9-]+)/(?P<size>[1-9][0-9]{0,8})/(?P<since>[-0-9TZ:]*)(?:/(?P<minimum>[1-9][0-9]{0,9}))?"
)


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods of which none is placed before there is room for `minimum`: of one attempt of a job, or one pod alone."""

    name: str
    """Of its job, or of the pod: `default/digits`."""
    size: int
    """How many pods it has once all are created."""
    since: str
    """When its job was created, RFC 3339."""
    waiting: tuple[Object, ...]
    """The pods that can be placed and are not."""
    gated: int
    """How many are kept from being placed by their scheduling gates."""
    placed: int
    """How many have a node, whether they run or have ended."""
    is_job: bool
    minimum: int
    """How many are placed at once or not at all; more than `size` never are."""

    @property
    def has_begun(self) -> bool:
        """Whether one of its pods has a node: the others can only follow."""
        return self.placed > 0

    @property
    def goes_first(self) -> bool:
        """Whether it holds nodes and lacks pods without which they are of no use: the whole gang, or its minimum."""
        return self.has_begun and (self.minimum == self.size or self.placed < self.minimum)

    @property
    def needed(self) -> int:
        """Number of pods to be placed at once: none once it has begun, since it then holds what it has anyway."""
        return 0 if self.has_begun else self.minimum


def is_held(pod: Object) -> bool:
    """Whether a pod takes of its node: it has one and has not ended, even if it is terminating."""
    return bool(pod["spec"].get("nodeName")) and _phase(pod) not in ENDED


def in_order(pods: Iterable[Object]) -> list[Gang]:
    """Sort the gangs that wait: first the gangs that are to be completed, then by age.

    Pods of equal age stay in the order in which they are given. A pod that is being deleted belongs to none.
    """
    members: dict[tuple[str, str], list[_Member]] = {}
    for pod in pods:
        if "deletionTimestamp" not in pod["metadata"]:
            member = _Member(pod, _owner(pod), _said(pod))
            members.setdefault(member.key, []).append(member)
    found = map(_gang, members.values())
    return sorted((gang for gang in found if gang.waiting), key=lambda g: (not g.goes_first, g.since))


class _Member(NamedTuple):
    """Pod with its owner and what its annotation says about its gang, each empty where there is none."""

    pod: Object
    job: Object
    said: dict[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return (self.job["uid"], self.said["name"]) if self.job and self.said else (self.pod["metadata"]["uid"], "")


def _gang(members: list[_Member]) -> Gang:
    first, job, said = members[0]
    pods = [each.pod for each in members]
    is_job = bool(job and said)
    size, minimum = _numbers(members) if is_job else (1, 1)
    return Gang(
        name=f"{first['metadata'].get('namespace', '')}/{job['name'] if is_job else first['metadata']['name']}",
        size=size,
        since=(said["since"] if is_job else "") or first["metadata"].get("creationTimestamp") or "",
        waiting=tuple(pod for pod in pods if _is_waiting(pod)),
        gated=sum(1 for pod in pods if pod["spec"].get("schedulingGates")),
        placed=sum(1 for pod in pods if pod["spec"].get("nodeName")),
        is_job=is_job,
        minimum=minimum,
    )


def _numbers(members: list[_Member]) -> tuple[int, int]:
    """Return size and minimum of a job's gang: what is created last knows best, which are fewer in scope Replica.

    Of minimums the largest counts: while a change reaches pod after pod, nothing is placed that may be too little.
    """
    numbers = [(size := int(said["size"]), int(said["minimum"] or size)) for _, _, said in members if said]
    size, minimum = min(size for size, _ in numbers), max(minimum for _, minimum in numbers)
    is_too_large = any(minimum > size for size, minimum in numbers)
    return size, minimum if is_too_large else min(minimum, size)


def _is_waiting(pod: Object) -> bool:
    return not (pod["spec"].get("nodeName") or pod["spec"].get("schedulingGates") or _phase(pod) in ENDED)


def _owner(pod: Object) -> Object:
    """Find the reference to the controller of a pod, empty where it has none: labels are edited by hand, this isn't."""
    references: list[Object] = pod["metadata"].get("ownerReferences") or []
    return next((each for each in references if each.get("controller")), {})


def _said(pod: Object) -> dict[str, str]:
    match = _GANG.fullmatch((pod["metadata"].get("annotations") or {}).get(names.GANG_MEMBER_ANNOTATION) or "")
    return match.groupdict() if match else {}


def _phase(pod: Object) -> str:
    return (pod.get("status") or {}).get("phase") or "Pending"
