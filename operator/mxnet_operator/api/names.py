"""The names that an MXJob and its pods carry: group, kind, replica types, labels, container and port.

They are training-operator 1.8.1's (a drop-in answers to the same selectors), and ours where it had none.
"""

from typing import Final

from mxnet_operator.api.replica_types import TYPES

GROUP: Final = "kubeflow.org"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "MXJob"
PLURAL: Final = "mxjobs"
SINGULAR: Final = "mxjob"
SHORT_NAME: Final = "mxj"

CONTAINER: Final = "mxnet"
"""The container whose exit decides about its replica; every template has one, as in kubeflow/mxnet-operator."""
PORT_NAME: Final = "mxjob-port"
DEFAULT_PORT: Final = 9091

SCHEDULER: Final = "Scheduler"
SERVER: Final = "Server"
WORKER: Final = "Worker"
TUNER_TRACKER: Final = "TunerTracker"
TUNER_SERVER: Final = "TunerServer"
TUNER: Final = "Tuner"
REPLICA_TYPES: Final = tuple(TYPES)
"""All types, in the order in which their pods are made; what each is for is in `api/replica_types.py`."""

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

REPLICA_ANNOTATION: Final = "mxjob.kubeflow.org/replica"
"""Which replica a pod is and of which attempt, as `Worker/1/0`: what its labels said when it was created."""
DELETE_WITH_WORKFLOW_ANNOTATION: Final = "mxjob.kubeflow.org/delete-with-workflow"
"""Where it is "true", a job that an Argo Workflow owns is deleted once that is over or being shut down."""
REPLICAS_DIGEST_ANNOTATION: Final = "mxjob.kubeflow.org/replicas-digest"
"""Of the replicas that `mxjob run --adopt` asked for: a finished job of others isn't the one that is asked for."""

HOLDER_ANNOTATION: Final = "mxjob.kubeflow.org/holder"
"""Who waits for the job, and alone may end it: its fencing token."""
LEASE_DURATION_ANNOTATION: Final = "mxjob.kubeflow.org/lease-duration-seconds"
LEASE_RENEW_TIME_ANNOTATION: Final = "mxjob.kubeflow.org/lease-renew-time"
LEASE_ACTION_ANNOTATION: Final = "mxjob.kubeflow.org/lease-action"
"""What the controller does to an unfinished job whose lease has run out: `delete` or `suspend`."""
SUSPENDED_BY_AIRFLOW_ANNOTATION: Final = "mxjob.kubeflow.org/suspended-by-airflow"
"""Tells a suspension for want of an Airflow task from a user's or a queue's: only the former is undone by a retry."""

TUNER_KEY_ANNOTATION: Final = "tuner-server-key"
"""Template annotation with the TVM RPC key, read by training-operator and mxnet-operator v1."""

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Kueue's label of a job that it suspends until there is room."""

GPU: Final = "nvidia.com/gpu"
OLD_GPU: Final = "alpha.kubernetes.io/nvidia-gpu"
"""The resource before Kubernetes 1.11; the documents' manifests have it, and no node offers it any more."""

MAX_NAME: Final = 63
"""Characters in a DNS label: pod hostnames and Service names must fit."""


def canonical_type(name: str) -> str | None:
    """The replica type that `name` spells in any case, or None (1.8.1 normalises `worker` to `Worker`)."""
    return _BY_LOWER_CASE.get(name.lower())


def replica_name(job: str, replica_type: str, index: int) -> str:
    """The name of a replica's pod, and of a root replica's Service: `<job>-<type>-<index>`."""
    return f"{job}-{replica_type.lower()}-{index}"


def subdomain(job: str) -> str:
    """The name of the headless Service under which every pod of the job resolves."""
    return f"{job}-mx"


def runtime_id(uid: str) -> str:
    """The RuntimeId of a job, "a random unique string" in the first operators: four characters, of its uid."""
    return uid[:4]


_BY_LOWER_CASE: Final = {name.lower(): name for name in REPLICA_TYPES}
