"""Trials of a training, two at a time; the workflow ends with the best one in its output `best`."""

from hera.workflows import DAG, Parameter, Task, Workflow

from mxnet_argo import MXJobSpec, MXJobStep, delete_jobs_on_exit, sweep, text

TRIALS = [{"lr": rate, "batch": batch} for rate in ("0.001", "0.003") for batch in ("32", "64")]

with Workflow(generate_name="sweep-", entrypoint="main", service_account_name="mxjob-workflow") as workflow:
    trial = MXJobStep(
        name="digits",
        inputs=[Parameter(name="lr"), Parameter(name="batch")],
        spec=MXJobSpec(
            image="mxjob/digits:1.0",
            command=["python", "train.py"],
            args=[
                *("--epochs", "5", "--kv-store", "dist_sync", "--result", "/dev/termination-log"),
                *("--learning-rate", text("lr"), "--batch-size", text("batch")),
            ],
            workers=2,
            run_policy={"backoffLimit": 3},
        ),
        deadline=3600,
    )
    search = sweep("search", trial, by="accuracy", trial_inputs=["lr", "batch"], parallelism=2)
    with DAG(name="main"):
        Task(name="search", template=search.name, arguments={"trials": TRIALS})
delete_jobs_on_exit(workflow)
