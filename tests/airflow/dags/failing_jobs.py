"""Jobs that fail in the ways in which training scripts do, and one that takes longer than its task may."""

from datetime import timedelta

from airflow.sdk import DAG

from mxnet_provider.operators.mxnet_job import MXNetJobOperator

FAILURES = {
    "exits": "import mxnet, sys; mxnet.kv.create('dist_sync'); sys.exit(3)",
    "raises": "import mxnet; mxnet.kv.create('dist_sync'); raise ValueError('no such data')",
    "lacks_a_module": "import mxnet, no_such_module",
}

with DAG(dag_id="failing_jobs", schedule=None):
    for task_id, script in FAILURES.items():
        MXNetJobOperator(
            task_id=task_id,
            image="mxjob/mxnet:1.9.1",
            command=["python", "-c", script],
            workers=1,
            servers=1,
            poll_interval=0.5,
        )
    MXNetJobOperator(
        task_id="takes_too_long",
        image="mxjob/mxnet:1.9.1",
        command=["python", "-c", "import time; print('working', flush=True); time.sleep(600)"],
        poll_interval=0.5,
        execution_timeout=timedelta(seconds=30),
    )

for dag_id, deferrable in {"long_job": False, "long_deferred_job": True}.items():
    with DAG(dag_id=dag_id, schedule=None):
        MXNetJobOperator(
            task_id="train",
            image="mxjob/mxnet:1.9.1",
            command=["python", "-c", "import time; print('working', flush=True); time.sleep(600)"],
            poll_interval=0.5,
            deferrable=deferrable,
        )
