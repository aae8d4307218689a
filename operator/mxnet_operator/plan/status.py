"""Status of an unfinished job: conditions, counts, times, and which replicas are done for good.

Conditions are written at once. Counts and finished replicas ride with the next condition; if none comes, they are
written `RECORD_DELAY` after the last change, so that the pods of a gang, which start and end together, cost one write.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import Condition, MXJob, MXJobStatus, ReplicaStatus
from mxnet_operator.plan.attempt import given_up, restart_scope, torn_down
from mxnet_operator.plan.begun import begins
from mxnet_operator.plan.deadlines import start_time
from mxnet_operator.plan.failure import Failure
from mxnet_operator.plan.fixed_replicas import with_started_replicas
from mxnet_operator.plan.gang import GangState
from mxnet_operator.plan.indexes import format_indexes
from mxnet_operator.plan.joining import with_attempt_created
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.ready import ready, replicas_in
from mxnet_operator.plan.replicas import Outcome, Replica
from mxnet_operator.plan.restart import Teardown
from mxnet_operator.plan.result import result_of
from mxnet_operator.plan.scheduler_grace import stopped_words
from mxnet_operator.plan.troubles import with_troubles
from mxnet_operator.readers.durations import short

RECORD_DELAY = timedelta(seconds=5)
_READY = ("Running", "Succeeded")


def running_status(
    job: MXJob, replicas: tuple[Replica, ...], now: datetime, gang: GangState | None = None
) -> MXJobStatus:
    """Return the status of an unfinished job: Created, and Running once every replica has started."""
    name = job.metadata.name
    status = job.status
    current = _resumed(conditions.created(status.conditions, name, now), job, now)
    current = with_troubles(current, job, replicas, now, gang)
    if not any(replica.outcome is Outcome.MISSING for replica in replicas):
        current = conditions.set_false(
            current, conditions.REPLICA_FAILURE, conditions.REASON_CREATED, "Every pod has been created.", now
        )
    if all(replica.started for replica in replicas):
        current = conditions.set_condition(
            current, conditions.RUNNING, conditions.reason(conditions.RUNNING), f"{names.KIND} {name} is running.", now
        )
    elif not any(replica.outcome is Outcome.MISSING for replica in replicas):
        status = with_attempt_created(job, status)
    status = with_started_replicas(job, status)
    return _with_conditions(status, current, replicas, started=start_time(status) or now)


def restarting_status(job: MXJob, observed: Observed, teardown: Teardown, now: datetime) -> MXJobStatus:
    """Return the status with the attempt raised and the reason; the failures no longer count once it is stored."""
    failed = tuple(replica.pod for replica in teardown.replicas if replica.pod is not None)
    gives_up = teardown.of_all and restart_scope(job) == "Replica"
    raised = given_up(job) if gives_up else torn_down(job, observed, failed, teardown.failures)
    current = conditions.set_condition(
        _resumed(conditions.created(raised.conditions, job.metadata.name, now), job, now),
        conditions.RESTARTING,
        conditions.reason(conditions.RESTARTING),
        teardown.message,
        now,
    )
    if restart_scope(job) == "Job":
        raised = msgspec.structs.replace(
            raised, replica_statuses=dict.fromkeys(job.spec.mx_replica_specs, ReplicaStatus())
        )
    stays = () if gives_up or restart_scope(job) == "Job" else (pod for pod in observed.pods if pod not in failed)
    status = msgspec.structs.replace(
        raised,
        conditions=current,
        state=conditions.state_of(current),
        ready=ready(sum(pod.phase in _READY for pod in stays), replicas_in(job)),
        start_time=start_time(raised) or now,
    )
    # An attempt that failed before any status told of it: the next one must not seem to be another operator's.
    return with_started_replicas(job, status) if begins(job.status) else status


def succeeded_status(job: MXJob, replicas: tuple[Replica, ...], now: datetime) -> MXJobStatus:
    """Return the last status of a job that succeeded; pods that still run count as succeeded, as in 1.8.1."""
    status = running_status(job, replicas, now)
    message = f"{names.KIND} {job.metadata.name} is successfully completed."
    if words := stopped_words(job, replicas, now):
        message = f"{message} {words[0].upper()}{words[1:]}"
    current = conditions.set_condition(
        status.conditions, conditions.SUCCEEDED, conditions.reason(conditions.SUCCEEDED), message, now
    )
    counts = {
        replica_type: ReplicaStatus(succeeded=count.succeeded + count.active, failed=count.failed)
        for replica_type, count in status.replica_statuses.items()
    }
    return _finished(status, conditions.with_lasting_transitions(job.status.conditions, current), counts, replicas, now)


def failed_status(job: MXJob, replicas: tuple[Replica, ...], failure: Failure, now: datetime) -> MXJobStatus:
    """Return the last status of a job that failed; pods that still run are about to be stopped and count as nothing."""
    status = running_status(job, replicas, now)
    current = conditions.set_condition(
        status.conditions, conditions.FAILED, conditions.reason(conditions.FAILED), failure.message, now
    )
    counts = {
        replica_type: ReplicaStatus(succeeded=count.succeeded, failed=count.failed)
        for replica_type, count in status.replica_statuses.items()
    }
    return _finished(status, conditions.with_lasting_transitions(job.status.conditions, current), counts, replicas, now)


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


def _counts(status: MXJobStatus) -> tuple[Any, ...]:
    """Return the part of the status that counts replicas by state."""
    return status.ready, status.replica_statuses, status.completed_indexes


def _resumed(current: tuple[Condition, ...], job: MXJob, now: datetime) -> tuple[Condition, ...]:
    message = f"{names.KIND} {job.metadata.name} is resumed."
    return conditions.set_false(current, conditions.SUSPENDED, conditions.REASON_RESUMED, message, now)


def _finished(
    status: MXJobStatus,
    current: tuple[Condition, ...],
    counts: dict[str, ReplicaStatus],
    replicas: tuple[Replica, ...],
    now: datetime,
) -> MXJobStatus:
    return msgspec.structs.replace(
        status,
        state=conditions.state_of(current),
        ready=_ready(counts, len(replicas)),
        duration=short((now - (status.start_time or now)).total_seconds()),
        conditions=current,
        replica_statuses=counts,
        completion_time=now,
    )


def _with_conditions(
    status: MXJobStatus,
    current: tuple[Condition, ...],
    replicas: tuple[Replica, ...],
    started: datetime,
) -> MXJobStatus:
    types = list(dict.fromkeys(replica.type for replica in replicas))
    done = {
        replica_type: format_indexes(
            replica.index for replica in replicas if replica.type == replica_type and replica.outcome is Outcome.DONE
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
    return ready(sum(count.active + count.succeeded for count in counts.values()), total)


def _count(replicas: tuple[Replica, ...], replica_type: str) -> ReplicaStatus:
    outcomes = [replica.outcome for replica in replicas if replica.type == replica_type]
    return ReplicaStatus(
        active=outcomes.count(Outcome.RUNNING),
        succeeded=outcomes.count(Outcome.DONE),
        failed=outcomes.count(Outcome.FAILED),
    )
