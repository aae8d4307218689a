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
    is_doubtful: bool = False
    """Whether it ended and was then deleted: to the second, and by clocks that may step, nobody can tell the order."""
    since: int = 0
    """The revision in which the end can be seen."""
    at: str = NOBODY_KNOWS
    """When it ended, or was asked to go, as the pod's own status says it."""
    late: tuple[int, str] | None = None
    """From which revision on the pod gives a later time, and which: that of its kubelet's own deletion.

    Without a grace period `deletionTimestamp` is the present, however long ago the first deletion was.
    """

    @property
    def counts(self) -> bool:
        """Whether it is a failure that counts against backoffLimit."""
        return self.end in ("exit", "node")

    def finish(self, end: End, revision: int, at: str, code: int = 0, reason: str = "") -> None:
        if not self.end:
            self.end, self.since, self.at, self.code, self.reason = end, revision, at, code, reason

    def as_of(self, revision: int) -> Self:
        """The life as a pod of this revision tells it."""
        return replace(self, at=self.late[1]) if self.late is not None and revision >= self.late[0] else self


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
