"""Failure of a job: the replica that failed first, its exit code, and its last log lines.

When one process of a gang dies, all others hang for ever, and a replacement can't rejoin (`docs/facts/mxnet.md`): one
failed replica fails the job.
"""

from datetime import UTC, datetime

import msgspec

from mxnet_operator.api import names
from mxnet_operator.api.exit_codes import OUT_OF_MEMORY
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Outcome, Replica
from mxnet_operator.readers.pods import cause_order

_MAX_LINES = 20
_NEVER = datetime.max.replace(tzinfo=UTC)
_NO_SHELL = 'exec: "sh": executable file not found'
"""Message of container runtimes for an image without a shell; the fail-fast hook starts a worker's command by one."""
_NO_SHELL_HINT = "\nThe fail-fast hook needs `sh` in the image: runPolicy.failFast: false does without both."


class Failure(msgspec.Struct, frozen=True):
    """Reason and message of a job's failure."""

    message: str
    """Message: 1.8.1's sentence, then the replica, how it ended, and its last lines."""


def failed_replicas(replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
    """Return the replicas that failed or were lost."""
    return tuple(replica for replica in replicas if replica.outcome in (Outcome.FAILED, Outcome.LOST))


def failure_of(job: MXJob, failed: tuple[Replica, ...]) -> Failure:
    """Return the failure of a job with these failed replicas, described by the one that failed first."""
    first = first_of(failed)
    count = sum(replica.type == first.type for replica in failed)
    headline = f"mxjob {job.metadata.name} is failed because {count} {first.type} replica(s) failed."
    return Failure(f"{headline} {describe(job, first)}")


def first_of(failed: tuple[Replica, ...]) -> Replica:
    """Return the replica that failed first: the others may have followed from it."""
    return min(failed, key=_cause_order)


def _cause_order(replica: Replica) -> tuple[datetime, bool]:
    pod = replica.pod
    if pod is None or replica.outcome is Outcome.LOST:
        return ended_at(replica), False
    return cause_order(pod.ended_at, pod.exit_code, pod.reason)


def ended_at(replica: Replica) -> datetime:
    """Return when a failed replica ended or was deleted; the latest representable time where unknown."""
    return (replica.pod.ended_at if replica.pod is not None else None) or _NEVER


def describe(job: MXJob, replica: Replica) -> str:
    """Return which replica failed, how it ended, and its last lines."""
    pod = replica.pod
    if pod is None:
        return f"{replica.label} is gone: its pod was removed while the job ran."
    why = ": ".join(part for part in (pod.pod_reason, pod.pod_message) if part)
    if replica.outcome is Outcome.LOST:
        how = _how_it_was_lost(pod)
        rest = f": {why}" if why else ""
        return f"{replica.label} {how} while the job ran{rest}{_exit_of(pod)}."
    if pod.exit_code:
        who = f"{replica.label}'s init container {pod.init_container}" if pod.init_container else replica.label
        reason = (
            f" ({why or pod.reason}{_limit(job, replica, pod)})" if (why or pod.reason) not in ("", "Error") else ""
        )
        hint = _NO_SHELL_HINT if _NO_SHELL in pod.message else ""
        return f"{who} exited with code {pod.exit_code}{reason}{_last_lines(pod.message)}{hint}"
    return f"{replica.label} failed: {why or 'its pod has phase Failed and no exit code'}"


def _limit(job: MXJob, replica: Replica, pod: PodView) -> str:
    """Return the memory limit of an OOM-killed container; empty where its template has none.

    Without a limit of its own it was its node that had no more, or another container of the pod's cgroup.
    """
    spec = job.spec.mx_replica_specs[replica.type].template["spec"]
    containers = (spec.get("initContainers") or ()) if pod.init_container else spec["containers"]
    name = pod.init_container or names.CONTAINER
    resources = next((each.get("resources") or {} for each in containers if each["name"] == name), {})
    limit = (resources.get("limits") or {}).get("memory")
    return f": its memory limit is {limit}" if limit and pod.reason == OUT_OF_MEMORY else ""


def _how_it_was_lost(pod: PodView) -> str:
    if pod.end_is_unknown and not pod.deleting and not pod.stopped_by_node:
        return f"was lost with its node, which did not see its end ({pod.reason}),"
    if pod.disruption:
        return f"was disrupted ({pod.disruption})"
    return "was stopped by its node" if pod.stopped_by_node else "was deleted"


def _exit_of(pod: PodView) -> str:
    """Return the exit code of a pod that was deleted or disrupted, which says nothing about its program."""
    return "" if pod.exit_code is None or pod.end_is_unknown else f"; it ended with exit code {pod.exit_code}"


def _last_lines(message: str) -> str:
    lines = [line.rstrip() for line in message.splitlines() if line.strip()]
    if not lines:
        return "; it wrote nothing."
    return ":\n" + "\n".join(lines[-_MAX_LINES:])
