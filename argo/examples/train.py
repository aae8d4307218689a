"""A distributed training as one step: `argo submit argo/examples/train.yaml -p epochs=5`."""

from hera.workflows import Parameter, Workflow

from mxnet_argo import MXJobSpec, MXJobStep, delete_jobs_on_exit, text

with Workflow(
    generate_name="digits-",
    entrypoint="digits",
    service_account_name="mxjob-workflow",
    arguments=[Parameter(name="epochs", value="20")],
) as workflow:
    MXJobStep(
        name="digits",
        inputs=[Parameter(name="epochs")],
        spec=MXJobSpec(
            image="mxjob/digits:1.0",
            command=["python", "train.py"],
            args=["--epochs", text("epochs"), "--kv-store", "dist_sync", "--result", "/dev/termination-log"],
            servers=2,
            workers=2,
            run_policy={"backoffLimit": 3},
        ),
        deadline=3600,
    )
delete_jobs_on_exit(workflow)
