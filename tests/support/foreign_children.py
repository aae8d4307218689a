"""Pods and other children of a job as operators before this one made them."""

from typing import Any

from apiserver_objects import owned_by

from mxnet_operator.api import names


def owner(job: dict[str, Any]) -> dict[str, Any]:
    """The reference to a stored job by which it controls a child."""
    return owned_by(job, controller=True, blockOwnerDeletion=True)


def labels_of_1_8_1(job: str, replica_type: str, index: int) -> dict[str, str]:
    """The labels that training-operator 1.8.1 gave to a pod or Service."""
    return {
        names.LABEL_OPERATOR_NAME: names.OPERATOR_NAME,
        names.LABEL_JOB_NAME: job,
        names.LABEL_REPLICA_TYPE: replica_type.lower(),
        names.LABEL_REPLICA_INDEX: str(index),
    }


def older_labels(job: str, replica_type: str, index: int) -> dict[str, str]:
    """The labels that kubeflow/mxnet-operator gave to a pod or Service."""
    return {
        "group-name": "kubeflow.org",
        "controller-name": "mxnet-operator",
        "job-name": job,
        "replica-type": replica_type.lower(),
        "replica-index": str(index),
    }


def foreign_pod(job: dict[str, Any], replica_type: str, index: int, *, labels: bool) -> dict[str, Any]:
    """A pod of a stored job, with the `labels` of 1.8.1 or those of kubeflow/mxnet-operator."""
    name = job["metadata"]["name"]
    labelled = (labels_of_1_8_1 if labels else older_labels)(name, replica_type, index)
    return {
        "metadata": {
            "name": names.replica_name(name, replica_type, index),
            "labels": labelled,
            "ownerReferences": [owner(job)],
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "mxnet", "image": "i"}]},
    }


def older_service(job: dict[str, Any], replica_type: str, index: int) -> dict[str, Any]:
    """The Service of a replica of a stored job as kubeflow/mxnet-operator made it."""
    name = job["metadata"]["name"]
    labels = older_labels(name, replica_type, index)
    return {
        "metadata": {
            "name": names.replica_name(name, replica_type, index),
            "labels": labels,
            "ownerReferences": [owner(job)],
        },
        "spec": {"clusterIP": "None", "selector": labels, "ports": [{"name": "mxjob-port", "port": 9091}]},
    }


def older_status(*condition_types: str) -> dict[str, Any]:
    """The status that those operators wrote: conditions and no state."""
    since = "2026-01-01T00:00:00Z"
    return {
        "startTime": since,
        "conditions": [
            {
                "type": condition_type,
                "status": "True",
                "reason": f"MXJob{condition_type}",
                "message": f"MXJob is {condition_type}.",
                "lastUpdateTime": since,
                "lastTransitionTime": since,
            }
            for condition_type in condition_types
        ],
    }
