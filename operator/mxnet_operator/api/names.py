"""Names that an MXJob and its pods carry: group, kind, replica types, labels, container and port.

They are training-operator 1.8.1's (a drop-in answers to the same selectors), and ours where it had none.
"""

from collections.abc import Iterable
from typing import Any, Final

from mxnet_operator.api.replica_types import TYPES

GROUP: Final = "kubeflow.org"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "MXJob"
PLURAL: Final = "mxjobs"
SINGULAR: Final = "mxjob"
SHORT_NAME: Final = "mxj"

CONTAINER: Final = "mxnet"
"""Container whose exit decides about its replica; every template has one, as in kubeflow/mxnet-operator."""
OUTPUT_VARIABLE: Final = "MXJOB_OUTPUT_DIR"
"""Variable of every replica: the folder for what it writes, by default its working directory."""
OUTPUT_MARK: Final = ".mxjob-output"
"""File in a folder that `mxjob run --output` made or took: such a folder is no part of a script's image."""
PORT_NAME: Final = "mxjob-port"
DEFAULT_PORT: Final = 9091

SCHEDULER: Final = "Scheduler"
SERVER: Final = "Server"
WORKER: Final = "Worker"
TUNER_TRACKER: Final = "TunerTracker"
TUNER_SERVER: Final = "TunerServer"
TUNER: Final = "Tuner"
REPLICA_TYPES: Final = tuple(TYPES)
"""Replica types, in the order in which their pods are created; `api/replica_types.py` describes each."""

_LABEL_PREFIX: Final = "training.kubeflow.org"
LABEL_OPERATOR_NAME: Final = f"{_LABEL_PREFIX}/operator-name"
LABEL_JOB_NAME: Final = f"{_LABEL_PREFIX}/job-name"
LABEL_REPLICA_TYPE: Final = f"{_LABEL_PREFIX}/replica-type"
LABEL_REPLICA_INDEX: Final = f"{_LABEL_PREFIX}/replica-index"
LABEL_JOB_ROLE: Final = f"{_LABEL_PREFIX}/job-role"
OPERATOR_NAME: Final = "mxjob-controller"

LABEL_JOB_UID: Final = "mxjob.kubeflow.org/job-uid"
LABEL_ATTEMPT: Final = "mxjob.kubeflow.org/attempt"
LABEL_RUNTIME_ID: Final = "mxjob.kubeflow.org/runtime-id"

GANG_ANNOTATION: Final = "mxjob.kubeflow.org/gang"
"""Annotation of a pod group: digest of the parts of its job that it was built from; with another it is outdated."""
TOUCHED_ANNOTATION: Final = "mxjob.kubeflow.org/touched"
"""Annotation of a pod group: when it was changed last to have its scheduler try the gang again, as RFC 3339 has it."""
REPLICA_ANNOTATION: Final = "mxjob.kubeflow.org/replica"
"""Annotation of a pod: its replica and attempt, as `Worker/1/0`, which its labels said when it was created."""
GANG_MEMBER_ANNOTATION: Final = "mxjob.kubeflow.org/gang-member"
"""Annotation of a pod, for the local cluster's scheduler: `attempt-0/9/2026-11-22T13:44:00Z`, its gang, how many pods
that has, and when the job was created. Pods of a gang start together or not at all."""
DELETE_WITH_WORKFLOW_ANNOTATION: Final = "mxjob.kubeflow.org/delete-with-workflow"
"""Annotation: where "true", a job that an Argo Workflow owns is deleted once that is over or being shut down."""
SUBMISSION_ANNOTATION: Final = "mxjob.kubeflow.org/submission"
"""Annotation with a random token of the job's submitter, by which a creation whose reply was lost is recognized."""
REPLICAS_DIGEST_ANNOTATION: Final = "mxjob.kubeflow.org/replicas-digest"
"""Annotation with a digest of the replicas of `mxjob run --adopt`: a finished job of others isn't adopted."""

HOLDER_ANNOTATION: Final = "mxjob.kubeflow.org/holder"
"""Annotation with the lease's holder, a fencing token: it alone may end the job."""
LEASE_DURATION_ANNOTATION: Final = "mxjob.kubeflow.org/lease-duration-seconds"
LEASE_RENEW_TIME_ANNOTATION: Final = "mxjob.kubeflow.org/lease-renew-time"
LEASE_ACTION_ANNOTATION: Final = "mxjob.kubeflow.org/lease-action"
"""Annotation with what the controller does to an unfinished job whose lease has expired: `delete` or `suspend`."""
SUSPENDED_BY_AIRFLOW_ANNOTATION: Final = "mxjob.kubeflow.org/suspended-by-airflow"
"""Annotation that marks a suspension for want of an Airflow task, which a retry undoes, unlike a user's."""

TUNER_KEY_ANNOTATION: Final = "tuner-server-key"
"""Template annotation with the TVM RPC key, read by training-operator and mxnet-operator v1."""

GPU: Final = "nvidia.com/gpu"
OLD_GPU: Final = "alpha.kubernetes.io/nvidia-gpu"
"""GPU resource name before Kubernetes 1.11; the documents' manifests have it, and no node offers it any more."""

MAX_NAME: Final = 63
"""Maximum characters of a DNS label: pod hostnames and Service names must fit."""


def canonical_type(name: str) -> str | None:
    """Return the replica type that `name` spells in any case, or None (1.8.1 normalises `worker` to `Worker`)."""
    return _BY_LOWER_CASE.get(name.lower())


def main_container(containers: Iterable[dict[str, Any]] | None) -> dict[str, Any]:
    """Return the container `mxnet` of a pod's containers, or of their statuses; `{}` where there is none."""
    return next((each for each in containers or () if each.get("name") == CONTAINER), {})


def replica_name(job: str, replica_type: str, index: int) -> str:
    """Return the name of a replica's pod, and of a root replica's Service: `<job>-<type>-<index>`."""
    return f"{job}-{replica_type.lower()}-{index}"


def replica_of(job: str, pod: str) -> tuple[str, int] | None:
    """Return the replica type and index of the pod with this name; None for a name that no pod of the job has."""
    written, _, index = pod.removeprefix(f"{job}-").rpartition("-")
    replica_type = canonical_type(written)
    if replica_type is None or not index.isdecimal() or replica_name(job, replica_type, int(index)) != pod:
        return None
    return replica_type, int(index)


def subdomain(job: str) -> str:
    """Return the name of the headless Service under which every pod of the job resolves."""
    return f"{job}-mx"


def runtime_id(uid: str) -> str:
    """Return the RuntimeId of a job, "a random unique string" in the first operators: four characters, of its uid."""
    return uid[:4]


_BY_LOWER_CASE: Final = {name.lower(): name for name in REPLICA_TYPES}
