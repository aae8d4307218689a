"""Metadata of every child of a job: its labels and the reference to its owner."""

from typing import Any

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES
from mxnet_operator.api.types import MXJob


def job_labels(job: MXJob) -> dict[str, str]:
    """Return the labels of every child: 1.8.1's, the job's uid, and its short form, the documents' RuntimeId."""
    uid = job.metadata.uid
    return {
        names.LABEL_OPERATOR_NAME: names.OPERATOR_NAME,
        names.LABEL_JOB_NAME: job.metadata.name,
        names.LABEL_JOB_UID: uid,
        names.LABEL_RUNTIME_ID: names.runtime_id(uid),
    }


def replica_labels(job: MXJob, replica_type: str, index: int) -> dict[str, str]:
    """Return the labels of one replica's pod, whatever its attempt.

    `job-role: master` goes to every Server: a quirk of 1.8.1 that selectors in use rely on.
    """
    job_role = TYPES[replica_type].job_role
    role = {names.LABEL_JOB_ROLE: job_role} if job_role else {}
    return {
        **job_labels(job),
        names.LABEL_REPLICA_TYPE: replica_type.lower(),
        names.LABEL_REPLICA_INDEX: str(index),
        **role,
    }


def pod_labels(job: MXJob, replica_type: str, index: int, attempt: int) -> dict[str, str]:
    return {**replica_labels(job, replica_type, index), names.LABEL_ATTEMPT: str(attempt)}


def owner_reference(job: MXJob) -> dict[str, Any]:
    """Return the controller reference by which the API server collects a child when its job is deleted."""
    return {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
