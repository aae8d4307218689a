"""Shortage: how much of a job the scheduler could place, and what the rest lacks, read from its words on the pods.

Schedulers say on each pod that waits why; nobody adds it up. kube-scheduler's own gang scheduling tells the members
that would fit from pods that don't; scheduler-plugins says what a gang lacks, if its pod group has minResources.
"""

import contextlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.quantities import Resources, add, pod_requests, quantity, written
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.replicas import Outcome, Replica

WOULD_FIT: Final = "waiting for minCount pods from a gang"
OF_A_GANG: Final = re.compile(r"\d+ of \d+ can be placed\b")
"""Pattern at the start of the local scheduler's messages about all pods of a job, the same on each of them."""
_INSUFFICIENT: Final = re.compile(r"Insufficient ([\w./-]+?)(?=[,.]*(?:\s|$))")
_GAP: Final = re.compile(r"([\w./-]+):\{\{(\d+) (-?\d+)\}")
"""A resource.Quantity as Go prints it: `nvidia.com/gpu:{{2 0} {<nil>}  DecimalSI}`, 2 times ten to the power of 0."""


class Shortage(msgspec.Struct, frozen=True):
    """Shortage of a job that waits for room: what it has and lacks."""

    wanted: int
    """Replicas that are not done."""
    placed: int
    """The pods that have a node."""
    would_fit: int
    """The pods that wait for others of their gang only."""
    missing: Resources
    """By resource, in its own unit."""

    def __str__(self) -> str:
        """Return the words of a job's condition: `7 of 9 placed, missing 2 nvidia.com/gpu`."""
        can = "can be placed" if self.would_fit else "placed"
        missing = " and ".join(f"{written(amount)} {name}" for name, amount in sorted(self.missing.items()))
        return f"{self.placed + self.would_fit} of {self.wanted} {can}" + (f", missing {missing}" if missing else "")


def shortage(job: MXJob, replicas: Iterable[Replica]) -> Shortage:
    """Sum up the shortage of a job with defaults, by what the scheduler says of its pods now."""
    needed = [replica for replica in replicas if replica.outcome is not Outcome.DONE]
    placed = sum(replica.pod is not None and replica.pod.is_placed for replica in needed)
    waiting = [(replica.type, replica.pod.unschedulable) for replica in needed if _waits(replica) and replica.pod]
    would_fit = sum(WOULD_FIT in words for _, words in waiting)
    gaps = [gap for _, words in waiting if (gap := _gap(words))]
    missing = gaps[0] if gaps else add(_lacking(job, *each) for each in waiting if WOULD_FIT not in each[1])
    return Shortage(len(needed), placed, would_fit, missing)


def shortage_in_words(job: MXJob, replicas: tuple[Replica, ...]) -> str:
    """Return the shortage of a job with defaults for its user; of the local scheduler, in its own words."""
    words = (replica.pod.unschedulable for replica in replicas if _waits(replica) and replica.pod)
    return next(filter(OF_A_GANG.match, words), "") or str(shortage(job, replicas))


def _waits(replica: Replica) -> bool:
    return replica.pod is not None and bool(replica.pod.unschedulable)


def _gap(words: str) -> Resources:
    """Return what a scheduler says is missing; nothing of a size that no node could have."""
    gap: Resources = {}
    for name, digits, scale in _GAP.findall(words):
        with contextlib.suppress(ValueError):
            gap[name.removeprefix("map[")] = quantity(f"{digits}e{scale}")
    return gap


def _lacking(job: MXJob, replica_type: str, words: str) -> Resources:
    """Return what a pod asks for of the resources that no node has enough of, in the scheduler's words."""
    short = set(_INSUFFICIENT.findall(words))
    try:
        requests = pod_requests(job.spec.mx_replica_specs[replica_type].template["spec"])
    except ValueError:
        return {}
    named = {names.GPU if name == names.OLD_GPU else name: amount for name, amount in requests.items()}
    return {name: amount for name, amount in named.items() if name in short}
