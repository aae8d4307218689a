"""A task that is the job of its run's configuration."""

from airflow.providers.common.compat.sdk import DAG

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

with DAG("digits_gang", schedule=None):
    MXNetJobOperator(
        task_id="train",
        manifest="{{ dag_run.conf['manifest'] | tojson }}",
        kubernetes_conn_id="nodes",
        deferrable=True,
        poll_interval=2,
        retries=0,
    )
