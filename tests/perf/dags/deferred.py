"""A DAG of as many tasks as the benchmark of the triggerer defers; none of them is ever executed."""

import os

from airflow.sdk import DAG

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

with DAG("deferred", schedule=None):
    for number in range(int(os.environ.get("MXJOB_BENCH_JOBS", "1"))):
        MXNetJobOperator(task_id=f"job-{number}", image="i", deferrable=True)
