"""`mxjob`: the command line for users. A command is imported when it is called, since all take a third of a second."""

from typing import Annotated

import typer

from mxnet_operator.cli.app import App, Verb
from mxnet_operator.cli.errors import run_app
from mxnet_operator.cli.version import show_version

app = App(
    name="mxjob",
    help="""Run MXNet training and TVM tuning jobs (MXJobs) on any Kubernetes cluster or on this machine.

    To start, in the folder of a training script: [bold]mxjob run train.py --workers 2[/].
    """,
)


@app.lazy
def run() -> Verb:
    """Create a job, follow it until it ends, and exit with 0 only if it Succeeded."""
    from mxnet_operator.cli.verbs import run

    return Verb(run.run, run.EXAMPLES)


@app.lazy
def init() -> Verb:
    """Write mxjob.yaml, an Airflow DAG, an Argo Workflow and a Dockerfile for the folder of a script."""
    from mxnet_operator.cli.verbs import init

    return Verb(init.init, init.EXAMPLES)


@app.lazy
def logs() -> Verb:
    """Show the log of a replica of a job, or with --replica all of every replica, each line with its replica."""
    from mxnet_operator.cli.verbs import logs

    return Verb(logs.logs, logs.EXAMPLES)


@app.lazy
def get() -> Verb:
    """List jobs: state, replicas of each type that run or have succeeded of those wanted, restarts and times."""
    from mxnet_operator.cli.verbs import get

    return Verb(get.get, get.EXAMPLES)


@app.lazy
def describe() -> Verb:
    """Show a job in full, with its replicas, events and files, and the last log lines of the first failed replica."""
    from mxnet_operator.cli.verbs import describe

    return Verb(describe.describe, describe.EXAMPLES)


@app.lazy
def dashboard() -> Verb:
    """Serve web pages of the cluster's jobs on this machine until Ctrl-C: states, figures, logs and events, live."""
    from mxnet_operator.cli.verbs import dashboard

    return Verb(dashboard.dashboard, dashboard.EXAMPLES)


@app.lazy
def cp() -> Verb:
    """Copy a file or folder that a replica wrote."""
    from mxnet_operator.cli.verbs import cp

    return Verb(cp.cp, cp.EXAMPLES)


@app.lazy
def wait() -> Verb:
    """Wait until a job has Succeeded, is Running or has finished, with its progress on stderr."""
    from mxnet_operator.cli.verbs import wait

    return Verb(wait.wait, wait.EXAMPLES)


@app.lazy
def stop() -> Verb:
    """Stop jobs, and wait until their processes have ended. Ctrl-C ends only the waiting."""
    from mxnet_operator.cli.verbs import stop

    return Verb(stop.stop, stop.EXAMPLES)


@app.lazy
def rerun() -> Verb:
    """Run a job again, as a new job with the same image, arguments and spec, and follow it as `mxjob run` does."""
    from mxnet_operator.cli.verbs import rerun

    return Verb(rerun.rerun, rerun.EXAMPLES)


@app.lazy
def delete() -> Verb:
    """Delete jobs with their pods and Services, and wait until all are gone. Ctrl-C ends only the waiting."""
    from mxnet_operator.cli.verbs import delete

    return Verb(delete.delete, delete.EXAMPLES)


@app.lazy
def validate() -> Verb:
    """Check job manifests of any API version, without a server."""
    from mxnet_operator.cli.verbs import validate

    return Verb(validate.validate, validate.EXAMPLES)


@app.lazy
def convert() -> Verb:
    """Convert job manifests of any older API version to kubeflow.org/v1, on standard output."""
    from mxnet_operator.cli.verbs import convert

    return Verb(convert.convert, convert.EXAMPLES)


@app.lazy
def local() -> typer.Typer:
    """Run a cluster on this machine: API server, controller, and pods as processes. No Kubernetes, no root."""
    from mxnet_operator.cli.verbs import local

    return local.app


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version("mxjob"), is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None: ...


def main() -> None:
    """Run `mxjob`; entry point of the console script."""
    run_app(app, "mxjob")


if __name__ == "__main__":
    main()
