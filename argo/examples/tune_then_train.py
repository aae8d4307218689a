"""A TVM tuning, and a training that finds the tuning's result in a variable."""

from hera.workflows import Parameter, Workflow

from mxnet_argo import MXJobSpec, MXJobStep, delete_jobs_on_exit, text, tune_then_train

CONTAINER = {"name": "mxnet", "image": "mxjob/tune:1.0", "command": ["python", "start.py"]}
TEMPLATE = {"metadata": {"annotations": {"tuner-server-key": "cpu"}}, "spec": {"containers": [CONTAINER]}}

with Workflow(
    generate_name="tune-then-train-", entrypoint="tune-then-train", service_account_name="mxjob-workflow"
) as workflow:
    tune = MXJobStep(
        name="tune",
        manifest={
            "spec": {
                "jobMode": "MXTune",
                "mxReplicaSpecs": {
                    "TunerTracker": {"template": TEMPLATE},
                    "TunerServer": {"replicas": 2, "template": TEMPLATE},
                    "Tuner": {"template": TEMPLATE},
                },
            }
        },
        deadline=1800,
    )
    train = MXJobStep(
        name="train",
        inputs=[Parameter(name="tuned")],
        spec=MXJobSpec(
            image="mxjob/digits:1.0",
            command=["python", "train.py"],
            args=["--epochs", "5", "--kv-store", "dist_sync", "--result", "/dev/termination-log"],
            env={"TUNED": text("tuned")},
            workers=2,
        ),
        deadline=3600,
    )
    tune_then_train("tune-then-train", tune, train, tuned_input="tuned")
delete_jobs_on_exit(workflow)
