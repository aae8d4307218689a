"""Jobs that train until somebody ends their task."""

from airflow.sdk import DAG

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

for dag_id, deferrable in {"long_job": False, "long_deferred_job": True}.items():
    with DAG(dag_id=dag_id, schedule=None):
        MXNetJobOperator(
            task_id="train",
            image="mxjob/mxnet:1.9.1",
            command=["sh", "-c", "echo working; sleep 600"],
            poll_interval=0.5,
            deferrable=deferrable,
        )
