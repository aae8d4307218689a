"""Status of the list formats (jzp1025/mx-operator's): phase, reason, and a list of replicaStatuses.

`state` is not among them: the documents' Running, Succeeded and Failed are also ours, in the same place, and where they
have Unknown ours says more (Created, Restarting, Suspended). Argo and the command line need one word of every format.
"""

from typing import Any, Final

from mxnet_operator.api import conditions, names
from mxnet_operator.api.formats.format import Status
from mxnet_operator.api.types import MXJobStatus, ReplicaStatus

CLEAN_UP: Final = "CleanUp"
UNKNOWN: Final = "Unknown"
_PHASES: Final = {
    "": "",
    conditions.CREATED: "Creating",
    conditions.RESTARTING: "Creating",
    conditions.SUSPENDED: "Creating",
    conditions.RUNNING: "Running",
    conditions.SUCCEEDED: "Done",
    conditions.FAILED: "Failed",
}
_SPOKEN_OF: Final = (conditions.RESTARTING, conditions.FAILED)
"""States whose cause `reason` states."""


def list_words(type_key: str, status: MXJobStatus, pods_left: bool) -> dict[str, Any]:
    """Return the fields of a list format's status; `type_key` is its name of an entry's type."""
    if not status.state:
        return {}
    over = status.state in conditions.TERMINAL
    fields: dict[str, Any] = {
        "phase": CLEAN_UP if over and pods_left else _PHASES[status.state],
        "reason": _reason(status),
    }
    if status.replica_statuses:
        fields["replicaStatuses"] = [_entry(type_key, *each) for each in status.replica_statuses.items()]
    return fields


def read_list_status(status: Status) -> Status:
    """Return a list format's status in v1's fields.

    The format's first operator wrote no conditions like ours: of a job that it finished, one is derived from the
    state, so that it doesn't run again.
    """
    read = counts_as_map(status)
    if read.get("state") == UNKNOWN:
        del read["state"]
    read["conditions"] = [each for each in read.get("conditions") or () if "status" in each]
    if read.get("state") in conditions.TERMINAL and not read["conditions"]:
        message = read.get("reason") or f"was {read['state']} when this controller first saw it"
        read["conditions"] = [
            {"type": read["state"], "status": "True", "reason": conditions.reason(read["state"]), "message": message}
        ]
    return read


def counts_as_map(status: Status) -> Status:
    """Return a copy of a status whose list of replicaStatuses, if it has one, is v1's map.

    A v1 job has the list for a moment after its user has rewritten it from a list format.
    """
    counts = status.get("replicaStatuses")
    return {**status, "replicaStatuses": dict(map(_counts, counts))} if isinstance(counts, list) else dict(status)


def _counts(entry: dict[str, Any]) -> tuple[str, dict[str, int]]:
    written = str(entry.get("mx_replica_type") or entry.get("Mx_replica_type"))
    states = entry.get("ReplicasStates") or {}
    return names.canonical_type(written) or written, {
        name: states[word] for word, name in _COUNTS.items() if word in states
    }


_COUNTS: Final = {"Running": "active", "Succeeded": "succeeded", "Failed": "failed"}


def _entry(type_key: str, replica_type: str, counts: ReplicaStatus) -> dict[str, Any]:
    numbers = {word: getattr(counts, name) for word, name in _COUNTS.items()}
    states = {word: number for word, number in numbers.items() if number}
    worst_first = ("Failed", "Running", "Succeeded")
    state = next((word for word in worst_first if word in states), UNKNOWN)
    return {"ReplicasStates": states, type_key: replica_type.upper(), "state": state}


def _reason(status: MXJobStatus) -> str:
    if status.state not in _SPOKEN_OF:
        return ""
    return next((each.message for each in status.conditions if each.type == status.state), "")
