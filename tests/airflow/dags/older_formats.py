"""Jobs written in older formats: an author need not rewrite a manifest to run it from Airflow."""

from airflow.sdk import DAG

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

SCRIPT = "open('/dev/termination-log', 'w').write('{{ task.task_id }}')"
TEMPLATE = {
    "spec": {"containers": [{"name": "mxnet", "image": "mxjob/mxnet:1.9.1", "command": ["python", "-c", SCRIPT]}]}
}

with DAG(dag_id="older_formats", schedule=None):
    MXNetJobOperator(
        task_id="list_format",
        manifest={
            "apiVersion": "kubeflow.org/v1alpha1",
            "kind": "MXJob",
            "metadata": {"name": "a-list"},
            "spec": {
                "jobMode": "local",
                "replicaSpecs": [{"replicas": 1, "mxReplicaType": "WORKER", "template": TEMPLATE}],
            },
        },
        deferrable=True,
        poll_interval=1,
    )
    MXNetJobOperator(
        task_id="v1beta1",
        manifest={
            "apiVersion": "kubeflow.org/v1beta1",
            "kind": "MXJob",
            "metadata": {"name": "beta"},
            "spec": {  # cleanPodPolicy is All if v1beta1 doesn't say otherwise: the pod is gone when the task looks
                "jobMode": "MXTrain",
                "mxReplicaSpecs": {"Worker": {"replicas": 1, "restartPolicy": "Never", "template": TEMPLATE}},
            },
        },
        deferrable=True,
        poll_interval=1,
    )
