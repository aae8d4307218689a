"""Address of the job's page in its status, by the template of the cluster's administrator."""

import msgspec

from mxnet_operator.api.job_url import job_url
from mxnet_operator.api.types import MXJob
from mxnet_operator.plan.actions import Plan
from mxnet_operator.plan.begun import is_begun
from mxnet_operator.plan.policy import Policy


def with_page(job: MXJob, policy: Policy) -> MXJob:
    """Return the job with the address of its page in its status; with none where there is no template."""
    metadata, template = job.metadata, policy.job_url_template
    url = job_url(template, namespace=metadata.namespace, name=metadata.name, uid=metadata.uid) if template else ""
    if url == job.status.url:
        return job
    return msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, url=url))


def recording_page(job: MXJob, located: MXJob, decided: Plan) -> Plan:
    """Return a plan that writes the address of a job whose template changed, even if nothing else is new.

    A job without conditions gets it with its first, and one that is acted on with the status after that.
    """
    is_new = located.status.url != job.status.url and is_begun(job.status)
    if not is_new or decided.status is not None or decided.actions or job.metadata.deletion_timestamp is not None:
        return decided
    return msgspec.structs.replace(decided, status=located.status)
