"""A training whose log is the step's, and which ends when its workflow is terminated: by an image with `mxjob`."""

from hera.workflows import Parameter, Workflow

from mxnet_argo import MXJobRunner, MXJobSpec, delete_jobs_on_exit, text

with Workflow(
    generate_name="digits-",
    entrypoint="digits",
    service_account_name="mxjob-workflow",
    arguments=[Parameter(name="epochs", value="20"), Parameter(name="runner-image", value="mxnet-operator:0.2.0.dev0")],
) as workflow:
    MXJobRunner(
        name="digits",
        image="{{inputs.parameters.runner-image}}",
        inputs=[Parameter(name="epochs"), Parameter(name="runner-image")],
        spec=MXJobSpec(
            image="mxjob/digits:1.0",
            command=["python", "train.py"],
            args=["--epochs", text("epochs"), "--kv-store", "dist_sync", "--result", "/dev/termination-log"],
            servers=2,
            workers=2,
            run_policy={"backoffLimit": 3},
        ),
        deadline=3600,
        timeout="2h",
    )
delete_jobs_on_exit(workflow)
