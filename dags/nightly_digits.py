"""Train anew every night once the night's data is there, and tell somebody where it fails.

The data is prepared by another MXJob, which something else creates (a script, Argo, another Airflow): a sensor waits
for it, deferred like the training, and never touches it. Give its name as the parameter `data_job`.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Context

from mxnet_provider.operators.mxnet_job import MXNetJobOperator
from mxnet_provider.sensors.mxnet_job import MXNetJobSensor


def tell(context: Context) -> None:
    """Called when a task has failed and will not be tried again; put your pager or mail here.

    The exception's text is the job's own: which replica, its exit code, its last lines.
    """
    ti: Any = context["ti"]
    print(f"PAGE: {ti.dag_id}.{ti.task_id} failed in run {ti.run_id}: {context.get('exception')}")
    if url := ti.xcom_pull(task_ids=ti.task_id, key="job_url"):
        print(f"PAGE: see {url}")


with DAG(
    dag_id="nightly_digits",
    description="Wait for the data, then train; tell somebody where that fails.",
    schedule="0 2 * * *",
    catchup=False,
    max_active_runs=1,
    default_args={"on_failure_callback": tell},
    params={"data_job": "prepare-digits", "epochs": 5},
    tags=["mxnet", "example"],
):
    data = MXNetJobSensor(
        task_id="wait_for_data",
        job_name="{{ params.data_job }}",
        missing_ok=True,  # it may not have been created yet
        deferrable=True,
        poke_interval=2,
        timeout=timedelta(hours=4).total_seconds(),
    )

    # A retry goes on with the job of the try before, where that still runs: a worker that dies costs no training.
    train = MXNetJobOperator(
        task_id="train",
        image="mxjob/digits:1.0",
        command=["python", "train.py"],
        args=["--epochs", "{{ params.epochs }}", "--result", "/dev/termination-log"],
        workers=1,
        deferrable=True,
        poll_interval=2,
        retries=2,
        retry_delay=timedelta(seconds=1),
        execution_timeout=timedelta(hours=2),
    )

    data >> train
