"""Expired leases: a job whose holder no longer renews its lease is deleted or suspended."""

from mxnet_operator.api import conditions, names
from mxnet_operator.api.job_lease import JobLease, lease_of
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import DeleteJob, Effects, Event, SuspendJob

_DONE = {"delete": "deleted", "suspend": "suspended"}


def kept_lease(job: MXJob) -> JobLease | None:
    """Return the lease that the job depends on; None for a job without one, or that is over.

    A suspended job needs no lease where its end would only suspend it.
    """
    lease = lease_of(job.metadata.annotations)
    if lease is None or not can_end(job) or (lease.action == "suspend" and job.spec.run_policy.suspend):
        return None
    return lease


def expired(job: MXJob, lease: JobLease) -> Effects:
    """Return the effects that end a job whose lease has expired; a renewal in the meantime prevents it."""
    metadata = job.metadata
    end = DeleteJob if lease.action == "delete" else SuspendJob
    message = (
        f"The lease of {lease.duration} s, which {lease.holder or 'its holder'} last renewed at"
        f" {lease.renewed or 'an unknown time'}, has expired: its holder no longer waits for the job. It is"
        f" {_DONE[lease.action]}, as {names.LEASE_ACTION_ANNOTATION} says."
    )
    return Effects(
        actions=(end(metadata.name, metadata.uid, metadata.resource_version),),
        events=(Event("Warning", "LeaseExpired", message),),
    )


def can_end(job: MXJob) -> bool:
    """Return whether the job is unfinished and the controller may end it.

    It may only end kubeflow.org's MXJobs: it has no right to delete those of older kinds.
    """
    is_ours = (job.api_version, job.kind) == (names.API_VERSION, names.KIND)
    return is_ours and job.metadata.deletion_timestamp is None and not conditions.is_terminal(job.status)
