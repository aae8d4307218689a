"""Status of an unfinished job: conditions, counts, times, and which replicas are done for good.

Conditions are written at once. Counts and finished replicas ride with the next condition; if none comes, they are
written `RECORD_DELAY` after the last change, so that the pods of a gang, which start and end together, cost one write.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.job_url import job_url
from mxnet_operator.api.types import Condition, MXJob, MXJobStatus, ReplicaStatus, TrainingStatus
from mxnet_operator.plan.actions import Effects, Failure, Report, Success
from mxnet_operator.plan.failures import as_resumed
from mxnet_operator.plan.replicas import (
    Replica,
    ReplicaState,
    format_indexes,
    is_begun,
    with_attempt_created,
)
from mxnet_operator.plan.started import start_time, with_started_replicas
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.success import result_of, stopped_words
from mxnet_operator.plan.times import Policy
from mxnet_operator.readers.durations import short
from mxnet_operator.readers.training_status import at_the_end

RECORD_DELAY: Final = timedelta(seconds=5)


def with_reports(current: tuple[Condition, ...], reports: Iterable[Report], now: datetime) -> tuple[Condition, ...]:
    """Return the conditions with these changes."""
    for report in reports:
        if report.status == "Absent":
            current = tuple(each for each in current if each.type != report.type)
        else:
            current = conditions.set_condition(
                current, report.type, report.reason, report.message, now, status=report.status
            )
    return current


def running_status(state: JobState, reports: Iterable[Report], training: TrainingStatus | None = None) -> MXJobStatus:
    """Return the status of an unfinished job: Created, and Running once every replica has started."""
    job, replicas, now = state.job, state.replicas, state.now
    name, status = job.metadata.name, job.status
    current = as_resumed(conditions.created(status.conditions, name, now), job, now)
    current = with_reports(current, reports, now)
    is_missing = any(replica.state is ReplicaState.MISSING for replica in replicas)
    if not is_missing:
        current = conditions.set_false(
            current, conditions.REPLICA_FAILURE, conditions.REASON_CREATED, "Every pod has been created.", now
        )
    if all(replica.started for replica in replicas):
        current = conditions.set_condition(
            current, conditions.RUNNING, conditions.reason(conditions.RUNNING), f"{names.KIND} {name} is running.", now
        )
    elif not is_missing:
        status = with_attempt_created(job, status)
    status = with_started_replicas(job, status)
    if training is not None:
        status = msgspec.structs.replace(status, training=training)
    return _with_conditions(status, current, replicas, started=start_time(status) or now)


def ended_status(state: JobState, reports: Iterable[Report], end: Success | Failure) -> MXJobStatus:
    """Return the last status of a job."""
    replicas = len(state.replicas)
    if isinstance(end, Failure):
        status, kind, message, reason = running_status(state, reports), conditions.FAILED, end.message, ""
    else:
        status, kind, reason = running_status(state, reports, end.training), conditions.SUCCEEDED, end.reason
        message = end.message or f"{names.KIND} {state.job.metadata.name} is successfully completed."
        if words := stopped_words(state.job, state.replicas, state.now):
            message = f"{message} {words[0].upper()}{words[1:]}"
    ended = with_end(status, kind, message, state.now, reason=reason, replicas=replicas)
    lasting = conditions.with_lasting_transitions(state.job.status.conditions, ended.conditions)
    return msgspec.structs.replace(ended, conditions=lasting)


def with_end(
    status: MXJobStatus, kind: str, message: str, now: datetime, *, reason: str = "", replicas: int | None = None
) -> MXJobStatus:
    """Return the status with a terminal condition.

    Pods that still run are about to be stopped. They count as succeeded if the job has, as in 1.8.1, else not.
    `replicas` is the number of the job's replicas; None where the job is invalid.
    """
    current = conditions.set_condition(status.conditions, kind, reason or conditions.reason(kind), message, now)
    counts = {
        replica_type: ReplicaStatus(
            succeeded=count.succeeded + (count.active if kind == conditions.SUCCEEDED else 0), failed=count.failed
        )
        for replica_type, count in status.replica_statuses.items()
    }
    return msgspec.structs.replace(
        status,
        state=conditions.state_of(current),
        ready=status.ready if replicas is None else _ready(counts, replicas),
        duration=short((now - (status.start_time or now)).total_seconds()),
        training=at_the_end(status.training),
        conditions=current,
        replica_statuses=counts,
        completion_time=now,
    )


def time_to_record(old: MXJobStatus, new: MXJobStatus, replicas: Iterable[Replica], now: datetime) -> timedelta | None:
    """Return how long the status may wait to be written: zero for a changed condition, None where nothing is new.

    A job that training-operator 1.8.1 made has conditions and no state: that is new, too.

    Pods say when they started and ended; what a node's clock puts in the future is no reason to wait.
    """
    if (old.state, old.conditions, old.created_attempts) != (new.state, new.conditions, new.created_attempts):
        return timedelta(0)
    if _counts(old) == _counts(new):
        return None
    of_pods = [(replica.pod.started_at, replica.pod.finished_at) for replica in replicas if replica.pod]
    times = [*(time for both in of_pods for time in both), *(c.last_update_time for c in old.conditions)]
    changed = max((time for time in times if time is not None and time <= now), default=None)
    return timedelta(0) if changed is None else max(changed + RECORD_DELAY - now, timedelta(0))


def with_page(job: MXJob, policy: Policy) -> MXJob:
    """Return the job with the address of its page in its status, by the template of the cluster's administrator.

    It has none where there is no template.
    """
    metadata, template = job.metadata, policy.job_url_template
    url = job_url(template, namespace=metadata.namespace, name=metadata.name, uid=metadata.uid) if template else ""
    if url == job.status.url:
        return job
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, url=url))


def recording_page(job: MXJob, located: MXJob, decided: Effects) -> Effects:
    """Return effects that write the address of a job whose template changed, even if nothing else is new.

    A job without conditions gets it with its first, and one that is acted on with the status after that.
    """
    is_new = located.status.url != job.status.url and is_begun(job.status)
    if not is_new or decided.status is not None or decided.actions or job.metadata.deletion_timestamp is not None:
        return decided
    return msgspec.structs.replace(decided, status=located.status)


def _counts(status: MXJobStatus) -> tuple[Any, ...]:
    """Return the part of the status that counts replicas by state, and epochs."""
    return status.ready, status.replica_statuses, status.completed_indexes, status.training


def _with_conditions(
    status: MXJobStatus,
    current: tuple[Condition, ...],
    replicas: tuple[Replica, ...],
    started: datetime,
) -> MXJobStatus:
    types = list(dict.fromkeys(replica.type for replica in replicas))
    done = {
        replica_type: format_indexes(
            replica.index for replica in replicas if replica.type == replica_type and replica.state is ReplicaState.DONE
        )
        for replica_type in types
    }
    counts = {replica_type: _count(replicas, replica_type) for replica_type in types}
    return msgspec.structs.replace(
        status,
        state=conditions.state_of(current),
        ready=_ready(counts, len(replicas)),
        conditions=current,
        replica_statuses=counts,
        completed_indexes={replica_type: indexes for replica_type, indexes in done.items() if indexes},
        result=result_of(replicas) or status.result,
        start_time=started,
    )


def _ready(counts: dict[str, ReplicaStatus], total: int) -> str:
    """Return `status.ready`, which `kubectl get` shows: how many of a job's replicas run or are done, as "3/4"."""
    return f"{sum(count.active + count.succeeded for count in counts.values())}/{total}"


def _count(replicas: tuple[Replica, ...], replica_type: str) -> ReplicaStatus:
    outcomes = [replica.state for replica in replicas if replica.type == replica_type]
    return ReplicaStatus(
        active=outcomes.count(ReplicaState.RUNNING),
        succeeded=outcomes.count(ReplicaState.DONE),
        failed=outcomes.count(ReplicaState.FAILED),
    )
