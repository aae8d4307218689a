"""What a job was started with: its time, and the counts of replicas and the restartScope, which stay while it runs.

ps-lite can't follow other numbers. In scope Job an attempt is all pods of one number, in scope Replica each pod has its
own: under the other scope the sound pods of a running job would look like left-overs.

The CRD's rule rejects a change on a job that isn't suspended. This is for what gets past it: a CRD without the rule, or
a suspension that was taken back before it came about. A change takes effect once the job says Suspended.
"""

from datetime import datetime
from typing import Final

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.defaults import RESTART_POLICY, with_defaults
from mxnet_operator.api.types import MXJob, MXJobStatus, ReplicaSpec
from mxnet_operator.plan.replicas import as_begun_anew, restart_scope

_TAKEN_AWAY: Final = ReplicaSpec(
    restart_policy=RESTART_POLICY,
    template={
        "spec": {
            "containers": [
                {
                    "name": names.CONTAINER,
                    "ports": [{"name": names.PORT_NAME, "containerPort": names.DEFAULT_PORT, "protocol": "TCP"}],
                }
            ]
        }
    },
)


def start_time(status: MXJobStatus) -> datetime | None:
    """Return when the job became active; None while suspended, though training-operator 1.8.1 kept startTime there."""
    return None if conditions.is_true(status.conditions, conditions.SUSPENDED) else status.start_time


def effective_job(job: MXJob) -> MXJob:
    """Return a job as its user wrote it with defaults, and as it was started."""
    return as_started(with_defaults(job))


def as_started(job: MXJob) -> MXJob:
    """Return a job with defaults as it was started: the types, counts and restartScope that status records.

    Where its present attempt has fewer replicas, with these.

    Of a type that was taken away only the number is known: its pods count, and the API server rejects new ones.
    """
    started = {**job.status.started_replicas, **job.status.fewer_replicas}
    if not started:
        return _to_be_started(job)
    specs = {
        replica_type: msgspec.structs.replace(
            job.spec.mx_replica_specs.get(replica_type, _TAKEN_AWAY), replicas=started[replica_type]
        )
        for replica_type in names.REPLICA_TYPES
        if replica_type in started
    }
    policy = job.spec.run_policy
    if scope := job.status.started_scope:
        policy = msgspec.structs.replace(policy, restart_scope="Job" if scope == "Job" else "Replica")
    spec = msgspec.structs.replace(job.spec, mx_replica_specs=specs, run_policy=policy)
    return msgspec.structs.replace(job, spec=spec)


def with_all_replicas(job: MXJob) -> MXJob:
    """Return a job with defaults as it was started, even if its present attempt has fewer replicas."""
    return as_started(msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, fewer_replicas={})))


def with_started_replicas(job: MXJob, status: MXJobStatus) -> MXJobStatus:
    """Return the status with the counts and scope of a job that was started, or is about to be."""
    started = status.started_replicas or _numbers(job)
    return msgspec.structs.replace(status, started_replicas=started, started_scope=restart_scope(job))


def changed_replicas(asked: MXJob) -> str:
    """Return the message of ReplicasChangeIgnored; empty where a job as written, with defaults, is as what runs."""
    started, wanted = asked.status.started_replicas, _numbers(asked)
    kinds = [kind for kind in dict.fromkeys((*started, *wanted)) if started.get(kind, 0) != wanted.get(kind, 0)]
    changes = [f"{kind} from {started.get(kind, 0)} to {wanted.get(kind, 0)}" for kind in kinds]
    what = ["number of replicas"] if kinds else []
    if (old := asked.status.started_scope) and old != (new := _scope_asked_for(asked)):
        changes.append(f"restartScope from {old} to {new}")
        what.append("restartScope")
    if not started or not changes:
        return ""
    return (
        f"The {' and the '.join(what)} was changed while the job runs ({', '.join(changes)}), which it can't follow: "
        "it goes on as it was started. Set spec.runPolicy.suspend to true, wait until the job is Suspended, and set it "
        "to false."
    )


def _to_be_started(job: MXJob) -> MXJob:
    """Return a job that was not started yet, or is suspended: restartScope may have been changed since it ran.

    Replicas that were done one by one are run again where it starts as a gang.
    """
    status = job.status
    if not (status.completed_indexes and conditions.is_true(status.conditions, conditions.SUSPENDED)):
        return job
    return msgspec.structs.replace(job, status=as_begun_anew(job, status))


def _scope_asked_for(asked: MXJob) -> str:
    """Return the restartScope that the spec asks for, for the replicas that were started."""
    started = with_all_replicas(asked).spec
    spec = msgspec.structs.replace(started, run_policy=asked.spec.run_policy)
    return restart_scope(msgspec.structs.replace(asked, spec=spec))


def _numbers(job: MXJob) -> dict[str, int]:
    return {replica_type: spec.replicas or 0 for replica_type, spec in job.spec.mx_replica_specs.items()}
