"""What really happened to each pod, known to the simulation alone: the truth behind a controller's view."""

from dataclasses import dataclass, field, replace
from typing import Literal, Self

from simulator.api import Object

from mxnet_operator.api import names

NOBODY_KNOWS = "9999"
"""The time of an end that the pod says no time of: after all others."""
End = Literal["", "done", "exit", "node", "disruption"]


@dataclass
class Life:
    """One pod, by its uid, whatever became of it."""

    name: str
    uid: str
    owner: str
    type: str
    index: int
    attempt: int
    made_at: int = 0
    """The revision in which it was made."""
    is_late: bool = False
    """Whether status was at a later attempt when it was made: by a leader with an old view. It is removed again."""
    started: bool = False
    started_at: int = 0
    """The revision in which that can be seen."""
    end: End = ""
    """How it ended, the first of it: exit 0, another exit, by its node (counts), or taken away (doesn't)."""
    code: int = 0
    reason: str = ""
    since: int = 0
    """The revision in which the end can be seen."""
    at: str = NOBODY_KNOWS
    """When it ended, or was asked to go, as the pod's own status says it."""
    removed: int = 0
    """The revision from which on a pod that has ended is being deleted: a failure that is seen only then counts not."""
    times: list[tuple[int, str]] = field(default_factory=list)
    """Other times that the pod gives, and from which revision on."""

    @property
    def counts(self) -> bool:
        """Whether it is a failure that counts against backoffLimit."""
        return self.end in ("exit", "node")

    def finish(self, end: End, revision: int, at: str, code: int = 0, reason: str = "") -> None:
        if not self.end:
            self.end, self.since, self.at, self.code, self.reason = end, revision, at, code, reason

    def as_of(self, revision: int) -> Self:
        """The life as a pod of this revision tells it."""
        at = next((time for since, time in reversed(self.times) if revision >= since), self.at)
        return replace(self, at=at, end="disruption" if self.counts and 0 < self.removed <= revision else self.end)

    def give_time(self, revision: int, time: str) -> None:
        """From this revision on the pod has one more time: the earlier one is when it ended."""
        self.times.append((revision, min(self.as_of(revision).at, time)))


@dataclass
class Lives:
    """Every pod of every job of the schedule."""

    by_uid: dict[str, Life] = field(default_factory=dict)

    def begin(self, pod: Object, restarts: int) -> None:
        """A pod was made while its job's status counted so many restarts."""
        metadata = pod["metadata"]
        labels, owner = metadata.get("labels") or {}, owner_of(pod)
        if not owner:
            return
        replica_type = names.canonical_type(labels[names.LABEL_REPLICA_TYPE])
        assert replica_type is not None
        attempt = int(labels[names.LABEL_ATTEMPT])
        self.by_uid[metadata["uid"]] = Life(
            metadata["name"],
            metadata["uid"],
            owner,
            replica_type,
            int(labels[names.LABEL_REPLICA_INDEX]),
            attempt,
            made_at=int(metadata["resourceVersion"]),
            is_late=attempt < restarts,
        )

    def of(self, job_uid: str) -> list[Life]:
        return [life for life in self.by_uid.values() if life.owner == job_uid]


def owner_of(obj: Object) -> str:
    """The uid of the controlling owner; empty where there is none."""
    return next((each["uid"] for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), "")
