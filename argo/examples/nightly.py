"""A training every night, by the shipped template, without Airflow and without a step of our own."""

from hera.workflows import DAG, CronWorkflow

from mxnet_argo import delete_jobs_on_exit, mxjob_ref

with CronWorkflow(
    name="nightly",
    schedules=["0 3 * * *"],
    timezone="Europe/Berlin",
    concurrency_policy="Forbid",
    starting_deadline_seconds=3600,
    entrypoint="nightly",
    service_account_name="mxjob-workflow",
) as workflow:
    with DAG(name="nightly"):
        mxjob_ref(
            "train",
            "mxjob-train",
            {
                "image": "mxjob/digits:1.0",
                "command": ["python", "train.py"],
                "args": ["--epochs", "20", "--kv-store", "dist_sync", "--result", "/dev/termination-log"],
                "servers": 2,
                "workers": 2,
                "deadline": 3600,
            },
        )
delete_jobs_on_exit(workflow)
