"""A job whose lease has run out: nobody waits for it any more, and nobody would end it."""

from mxnet_operator.api import names
from mxnet_operator.api.job_lease import JobLease, lease_of
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import DeleteJob, Event, Plan, SuspendJob
from mxnet_operator.plan.deletion import can_end

_DONE = {"delete": "deleted", "suspend": "suspended"}


def kept_lease(job: MXJob) -> JobLease | None:
    """The lease that decides whether the job goes on; None for one that has none, or has nothing left to end.

    A suspended job needs no lease where its end would only suspend it.
    """
    lease = lease_of(job.metadata.annotations)
    if lease is None or not can_end(job) or (lease.action == "suspend" and job.spec.run_policy.suspend):
        return None
    return lease


def expired(job: MXJob, lease: JobLease) -> Plan:
    """The end of a job whose lease has run out, which a renewal in the meantime prevents."""
    metadata = job.metadata
    end = DeleteJob if lease.action == "delete" else SuspendJob
    message = (
        f"The lease of {lease.duration} s, which {lease.holder or 'its holder'} last renewed at"
        f" {lease.renewed or 'an unknown time'}, has run out: nobody waits for the job any more. It is"
        f" {_DONE[lease.action]}, as {names.LEASE_ACTION_ANNOTATION} says."
    )
    return Plan(
        actions=(end(metadata.name, metadata.uid, metadata.resource_version),),
        events=(Event("Warning", "LeaseExpired", message),),
    )
