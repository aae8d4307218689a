"""Failures: what the end of a replica leads to: the job's failure, or another attempt after a back-off.

When one process of a gang dies, all others hang for ever, and a replacement can't rejoin (`docs/facts/mxnet.md`): one
failed replica fails the job, or restarts all of it. The table of `docs/semantics.md`: restartPolicy decides, exit codes
where it says ExitCode, and disruptions (a preempted pod, a drained node, a deletion by hand) are tried again without
counting against backoffLimit.
"""

import zlib
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.exit_codes import KILLED, OUT_OF_MEMORY, is_retryable
from mxnet_operator.api.types import Condition, MXJob, MXJobStatus, ReplicaStatus
from mxnet_operator.plan.actions import Failure, Teardown
from mxnet_operator.plan.observed import EVICTED, Observed, PodView
from mxnet_operator.plan.replicas import Replica, ReplicaState, as_begun_anew, begins, replicas_in, restart_scope
from mxnet_operator.plan.started import as_started, start_time, with_started_replicas
from mxnet_operator.plan.times import DEFAULT, Policy
from mxnet_operator.readers.durations import after
from mxnet_operator.readers.pods import cause_order

_READY: Final = ("Running", "Succeeded")
MAX_RESTARTING: Final = 64
"""Maximum number of pods replaced at a time in scope Replica: more at once would make the status too long."""
CLOCK_SKEW: Final = timedelta(minutes=1)
"""Largest clock skew between two controllers that is expected without a clock having been set."""
JITTER: Final = 0.1
"""Part of the back-off that is spread by job, so that jobs which failed together restart apart."""
_MAX_LINES = 20
_NEVER = datetime.max.replace(tzinfo=UTC)
_NO_SHELL = 'exec: "sh": executable file not found'
"""Message of container runtimes for an image without a shell; the fail-fast hook starts a worker's command by one."""
_NO_SHELL_HINT = "\nThe fail-fast hook needs `sh` in the image: runPolicy.failFast: false does without both."
_DISRUPTIONS: Final = frozenset(
    {"PreemptionByScheduler", "DeletionByTaintManager", "EvictionByEvictionAPI", "DeletionByPodGC"}
)
"""Reasons of the condition DisruptionTarget that never count; with TerminationByKubelet the pod's reason decides."""


def end_of_attempt(job: MXJob, replicas: tuple[Replica, ...], terminating: int = 0) -> Failure | Teardown | None:
    """Return the job's failure or the teardown that failed replicas lead to; None while none may be replaced now.

    The job has defaults. `terminating` is the number of pods being replaced: where replicas restart one by one, status
    lists each.
    """
    failed = tuple(each for each in replicas if each.state in (ReplicaState.FAILED, ReplicaState.LOST))
    if not failed:
        return None
    decisive = _decisive(job, failed)
    final = tuple(
        replica
        for replica in failed
        if job.spec.mx_replica_specs[replica.type].restart_policy == "Never"
        or (replica in decisive and not _is_retryable(job, replica))
    )
    if final:
        first = _first_of(final)
        count = sum(replica.type == first.type for replica in final)
        headline = f"mxjob {job.metadata.name} is failed because {count} {first.type} replica(s) failed."
        return Failure(f"{headline} {_describe(job, first)}")
    if restart_scope(job) == "Replica":
        failed = decisive = tuple(sorted(failed, key=_ended_at)[: max(MAX_RESTARTING - terminating, 0)])
        if not failed:
            return None
    failures = sum(replica.state is ReplicaState.FAILED or not is_disruption(replica.pod) for replica in decisive)
    if restart_scope(job) == "Job":
        failures = min(failures, 1)
    limit = job.spec.run_policy.backoff_limit or 0
    counted = job.status.restarts_count_towards_max
    first = _first_of(failed)
    if failures and counted + failures > limit:
        name = job.metadata.name
        ended = f"Job {name} has failed because it has reached the specified backoff limit ({limit})."
        return Failure(f"{ended} {_describe(job, first)}")
    count = sum(replica.type == first.type for replica in failed)
    return Teardown(
        tuple(replica.pod for replica in failed if replica.pod is not None),
        failures,
        f"mxjob {job.metadata.name} is restarting because {count} {first.type} replica(s) failed "
        f"{counted_restart(job, failures)}. {_describe(job, first)}",
    )


def is_disruption(pod: PodView | None) -> bool:
    """Return whether a lost pod was disrupted; one evicted under node pressure has failed instead."""
    if pod is None or pod.deleting or pod.disruption in _DISRUPTIONS:
        return True
    return pod.pod_reason != EVICTED and (not pod.disruption or pod.stopped_by_node or pod.end_is_unknown)


def counted_restart(job: MXJob, failures: int = 0) -> str:
    """Return which restart comes next, and how many of backoffLimit count with it, as messages say it."""
    counted = job.status.restarts_count_towards_max + failures
    return f"(restart {job.status.restarts + 1}; {counted} of {job.spec.run_policy.backoff_limit or 0} count)"


def next_attempt(job: MXJob, now: datetime, policy: Policy = DEFAULT) -> datetime | None:
    """Return when the pods of the next attempt may be created; None where no back-off applies.

    It goes by the failures that count, and in a job without any by the disruptions since it was started or resumed.
    No back-off applies to a resumed job, to the first of those disruptions, and where the last attempt ended in the
    future: a clock was set back since, and how long ago that was is unknown.
    """
    status = job.status
    since = next(
        (c.last_update_time for c in status.conditions if c.type == conditions.RESTARTING and c.status == "True"), None
    )
    disruptions = status.restarts - status.first_attempt
    doublings = (status.restarts_count_towards_max or disruptions - 1) - 1
    if since is None or doublings < 0 or since > now + CLOCK_SKEW:
        return None
    wait = min(policy.first_backoff * (1 << min(doublings, 10)), policy.longest_backoff)
    fraction = zlib.crc32(f"{job.metadata.uid}/{status.restarts}".encode()) / 2**32
    return after(since, wait.total_seconds() * (1 + JITTER * fraction))


def restarting_status(job: MXJob, observed: Observed, teardown: Teardown, now: datetime) -> MXJobStatus:
    """Return the status with the attempt raised and the reason; the failures no longer count once it is stored."""
    gives_up = teardown.of_all and restart_scope(job) == "Replica"
    raised = given_up(job) if gives_up else torn_down(job, observed, teardown.pods, teardown.failures)
    current = conditions.set_condition(
        as_resumed(conditions.created(raised.conditions, job.metadata.name, now), job, now),
        conditions.RESTARTING,
        conditions.reason(conditions.RESTARTING),
        teardown.message,
        now,
    )
    if restart_scope(job) == "Job":
        raised = msgspec.structs.replace(
            raised, replica_statuses=dict.fromkeys(job.spec.mx_replica_specs, ReplicaStatus())
        )
    raised = msgspec.structs.replace(raised, fewer_replicas=teardown.fewer_replicas, training=None)
    stays = (
        () if gives_up or restart_scope(job) == "Job" else (pod for pod in observed.pods if pod not in teardown.pods)
    )
    next_job = as_started(msgspec.structs.replace(job, status=raised))
    status = msgspec.structs.replace(
        raised,
        conditions=current,
        state=conditions.state_of(current),
        ready=f"{sum(pod.phase in _READY for pod in stays)}/{replicas_in(next_job)}",
        start_time=start_time(raised) or now,
    )
    # An attempt that failed before any status told of it: the next one must not seem to be another operator's.
    return with_started_replicas(job, status) if begins(job.status) else status


def as_resumed(current: tuple[Condition, ...], job: MXJob, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions of a job that runs: none is Suspended any more."""
    message = f"{names.KIND} {job.metadata.name} is resumed."
    return conditions.set_false(current, conditions.SUSPENDED, conditions.REASON_RESUMED, message, now)


def torn_down(job: MXJob, observed: Observed, pods: tuple[PodView, ...], failures: int) -> MXJobStatus:
    """Return the status with the attempt raised: these pods are given up, and `failures` count towards backoffLimit."""
    raised = msgspec.structs.replace(
        job.status,
        restarts=job.status.restarts + 1,
        restarts_count_towards_max=job.status.restarts_count_towards_max + failures,
    )
    if restart_scope(job) == "Job":
        return as_begun_anew(job, raised)
    present = {pod.uid for pod in observed.pods}
    terminating = {pod.uid for pod in pods} | (present & set(job.status.restarting_pods))
    return msgspec.structs.replace(raised, restarting_pods=tuple(sorted(terminating)))


def given_up(job: MXJob) -> MXJobStatus:
    """Return the status with the attempt raised where all pods of a job are given up, none for a failure.

    The number of the attempt says so of any number of pods, and of pods that nobody has observed yet.
    """
    restarts = job.status.restarts + 1
    status = msgspec.structs.replace(
        job.status, restarts=restarts, first_attempt=restarts, restarting_pods=(), fewer_replicas={}, training=None
    )
    return as_begun_anew(job, status)


def _decisive(job: MXJob, failed: tuple[Replica, ...]) -> tuple[Replica, ...]:
    """Return the failures that count: in a gang the first ones, since the end of one ends its mates."""
    if restart_scope(job) == "Replica":
        return failed
    first = min(map(_ended_at, failed))
    return tuple(replica for replica in failed if _ended_at(replica) == first)


def _is_retryable(job: MXJob, replica: Replica) -> bool:
    policy = job.spec.mx_replica_specs[replica.type].restart_policy
    if replica.state is ReplicaState.LOST or policy != "ExitCode":
        return True
    pod = replica.pod
    if pod is None or pod.exit_code is None or pod.pod_reason == EVICTED:  # the node's fault, not the program's
        return True
    return is_retryable(pod.exit_code, pod.reason, job.spec.run_policy.exit_codes)


def _first_of(failed: tuple[Replica, ...]) -> Replica:
    """Return the replica that failed first: the others may have followed from it."""
    return min(failed, key=_cause_order)


def _cause_order(replica: Replica) -> tuple[datetime, bool]:
    pod = replica.pod
    if pod is None or replica.state is ReplicaState.LOST:
        return _ended_at(replica), False
    return cause_order(pod.ended_at, pod.exit_code, pod.reason)


def _ended_at(replica: Replica) -> datetime:
    """Return when a failed replica ended or was deleted; the latest representable time where unknown."""
    return (replica.pod.ended_at if replica.pod is not None else None) or _NEVER


def _describe(job: MXJob, replica: Replica) -> str:
    """Return which replica failed, how it ended, and its last lines."""
    pod = replica.pod
    if pod is None:
        return f"{replica.label} is gone: its pod was removed while the job ran."
    why = ": ".join(part for part in (pod.pod_reason, pod.pod_message) if part)
    if replica.state is ReplicaState.LOST:
        how = _how_it_was_lost(pod)
        rest = f": {why}" if why else ""
        if pod.exit_code is not None and not pod.end_is_unknown:  # It decides nothing.
            lines = _last_lines(pod.message) if pod.message.strip() else "."
            return f"{replica.label} {how} while the job ran{rest}; it ended with exit code {pod.exit_code}{lines}"
        return f"{replica.label} {how} while the job ran{rest}."
    if pod.exit_code:
        who = f"{replica.label}'s init container {pod.init_container}" if pod.init_container else replica.label
        reason = f" ({words})" if (words := _reason_of(job, replica, pod, why)) else ""
        hint = _NO_SHELL_HINT if _NO_SHELL in pod.message else ""
        return f"{who} exited with code {pod.exit_code}{reason}{_last_lines(pod.message)}{hint}"
    return f"{replica.label} failed: {why or 'its pod has phase Failed and no exit code'}"


def _reason_of(job: MXJob, replica: Replica, pod: PodView, why: str) -> str:
    """Return why a container ended with its exit code; empty where nothing is known.

    A kernel that runs out of memory often kills one of the container's child processes, or a runtime doesn't tell:
    then 137 comes without the reason OOMKilled.
    """
    limit = _memory_limit(job, replica, pod)
    of_limit = f": its memory limit is {limit}" if limit else ""
    if pod.exit_code == KILLED and why in ("", "Error") and pod.reason in ("", "Error"):
        return f"killed: out of memory?{of_limit[1:]}"
    if (words := why or pod.reason) in ("", "Error"):
        return ""
    return words + (of_limit if pod.reason == OUT_OF_MEMORY else "")


def _memory_limit(job: MXJob, replica: Replica, pod: PodView) -> str:
    """Return the memory limit of a container that ended; empty where its template has none.

    Without a limit of its own it was its node that had no more, or another container of the pod's cgroup.
    """
    spec = job.spec.mx_replica_specs[replica.type].template["spec"]
    containers = (spec.get("initContainers") or ()) if pod.init_container else spec["containers"]
    name = pod.init_container or names.CONTAINER
    resources = next((each.get("resources") or {} for each in containers if each["name"] == name), {})
    return str((resources.get("limits") or {}).get("memory") or "")


def _how_it_was_lost(pod: PodView) -> str:
    if pod.end_is_unknown and not pod.deleting and not pod.stopped_by_node:
        return f"was lost with its node, which did not see its end ({pod.reason}),"
    if pod.disruption:
        return f"was disrupted ({pod.disruption})"
    return "was stopped by its node" if pod.stopped_by_node else "was deleted"


def _last_lines(message: str) -> str:
    lines = [line.rstrip() for line in message.splitlines() if line.strip()]
    if not lines:
        return "; it wrote nothing."
    return ":\n" + "\n".join(lines[-_MAX_LINES:])
