"""`mxjob`: the command line for users. A command is imported when it is called, since all take a third of a second."""

from mxnet_operator.cli.app import App
from mxnet_operator.cli.errors import run_app

app = App(
    name="mxjob",
    help="""Run MXNet training and TVM tuning jobs (MXJobs) on any Kubernetes cluster or on this machine.

    To start, in the folder of a training script: [bold]mxjob run train.py --workers 2[/].
    """,
)


app.lazy("run", "Create a job, follow it until it ends, and exit with 0 only if it Succeeded.")
app.lazy("init", "Write mxjob.yaml, an Airflow DAG, an Argo Workflow and a Dockerfile for the folder of a script.")
app.lazy(
    "logs", "Show the log of a replica of a job, or with --replica all of every replica, each line with its replica."
)
app.lazy(
    "get", "List jobs: state, replicas of each type that run or have succeeded of those wanted, restarts and times."
)
app.lazy(
    "describe",
    "Show a job in full, with its replicas, events and files, and the last log lines of the first failed replica.",
)
app.lazy(
    "dashboard",
    "Serve web pages of the cluster's jobs on this machine until Ctrl-C: states, figures, logs and events, live.",
)
app.lazy("cp", "Copy a file or folder that a replica wrote.")
app.lazy("wait", "Wait until a job has Succeeded, is Running or has finished, with its progress on stderr.")
app.lazy("stop", "Stop jobs, and wait until their processes have ended. Ctrl-C ends only the waiting.")
app.lazy(
    "rerun", "Run a job again, as a new job with the same image, arguments and spec, and follow it as `mxjob run` does."
)
app.lazy(
    "delete", "Delete jobs with their pods and Services, and wait until all are gone. Ctrl-C ends only the waiting."
)
app.lazy("validate", "Check job manifests of any API version, without a server.")
app.lazy("convert", "Convert job manifests of any older API version to kubeflow.org/v1, on standard output.")
app.lazy(
    "local", "Run a cluster on this machine: API server, controller, and pods as processes. No Kubernetes, no root."
)


app.with_version("mxjob")


def main() -> None:
    run_app(app, "mxjob")


if __name__ == "__main__":
    main()
