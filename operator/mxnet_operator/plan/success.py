"""Success policies: when a job has succeeded.

The default waits for the Scheduler and every Worker: a scheduler exits 0 a moment before the workers do, and even when
the only worker failed (`docs/facts/mxnet.md`), so it can't decide alone as it did in the documents.
"""

from datetime import datetime

from mxnet_operator.api import names
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.replicas import Outcome, Replica, has_type, is_tuning, of_types, those
from mxnet_operator.plan.scheduler_grace import has_outlived_grace


def has_succeeded(job: MXJob, replicas: tuple[Replica, ...], now: datetime) -> bool:
    """Return whether every deciding replica is done; a Scheduler that outlives its Workers decides for a minute."""
    deciding = _deciding(job.spec.success_policy, replicas)
    return all(replica.outcome is Outcome.DONE for replica in deciding) or has_outlived_grace(job, replicas, now)


def _deciding(policy: str | None, replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
    if is_tuning(replicas):
        return those(replicas, lambda each: each.decides and each.tunes)
    if policy == "Scheduler" and has_type(replicas, names.SCHEDULER):
        return of_types(replicas, names.SCHEDULER)
    if policy == "AllWorkers" and has_type(replicas, names.WORKER):
        return of_types(replicas, names.WORKER)
    return those(replicas, lambda each: each.decides and not each.tunes) or replicas
