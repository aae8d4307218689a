"""`mxjob`: the command line for users. A command is imported when it is called, since all take a third of a second."""

from typing import Final

from mxnet_operator.cli.app import App
from mxnet_operator.cli.errors import run_app

_COMMANDS: Final = {
    "run": "Create a job, follow it until it ends, and exit with 0 only if it Succeeded.",
    "init": "Write mxjob.yaml, an Airflow DAG, an Argo Workflow and a Dockerfile for the folder of a script.",
    "logs": "Show the log of a replica of a job, or with --replica all of every replica, each line with its replica.",
    "get": "List jobs: state, replicas of each type that run or have succeeded of those wanted, restarts and times.",
    "describe": "Show a job in full, with its replicas, events and files, and the last log lines of the first"
    " failed replica.",
    "dashboard": "Serve web pages of the cluster's jobs on this machine until Ctrl-C: states, figures, logs and"
    " events, live.",
    "cp": "Copy a file or folder that a replica wrote.",
    "wait": "Wait until a job has Succeeded, is Running or has finished, with its progress on stderr.",
    "stop": "Stop jobs, and wait until their processes have ended. Ctrl-C ends only the waiting.",
    "rerun": "Run a job again, as a new job with the same image, arguments and spec, and follow it as `mxjob run`"
    " does.",
    "delete": "Delete jobs with their pods and Services, and wait until all are gone. Ctrl-C ends only the waiting.",
    "validate": "Check job manifests of any API version, without a server.",
    "convert": "Convert job manifests of any older API version to kubeflow.org/v1, on standard output.",
    "local": "Run a cluster on this machine: API server, controller, and pods as processes. No Kubernetes, no root.",
}
"""Line of each command in the list, the first of its help."""

app = App(
    name="mxjob",
    help="""Run MXNet training and TVM tuning jobs (MXJobs) on any Kubernetes cluster or on this machine.

    To start, in the folder of a training script: [bold]mxjob run train.py --workers 2[/].
    """,
)
for name, summary in _COMMANDS.items():
    app.lazy(name, summary)
app.with_version("mxjob")


def main() -> None:
    run_app(app, "mxjob")


if __name__ == "__main__":
    main()
