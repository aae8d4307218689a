"""`mxjob local`: a cluster on this machine, without root and without containers."""

import json
import sys
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from mxnet_operator.cli import images
from mxnet_operator.cli.app import App
from mxnet_operator.cli.errors import CommandError, extra_needed
from mxnet_operator.cli.terminal import data_console, message_console, say, write_line

if TYPE_CHECKING:
    from mxnet_operator.local.home import ClusterFiles

NOT_RUNNING = 3
"""Exit code of `status` where no cluster runs, as systemctl's."""

START = "mxjob local up --detach"


class ControlPlane(StrEnum):
    """The values of `--control-plane`, which are mxnet_operator.local.cluster's."""

    LOCAL = "local"
    KUBERNETES = "kubernetes"


app = App(
    help="""A cluster on this machine: API server, controller and the pods as processes. No Kubernetes, no root.

    Its state is under $MXJOB_HOME, by default your user data folder.
    """,
)
app.add_typer(images.app, name="image")


@app.command()
def up(  # noqa: PLR0917 - options
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Run in the background; return when ready.")] = False,
    cpus: Annotated[
        float | None,
        typer.Option(min=0.1, help="CPUs that pods may request; default: this machine's.", show_default=False),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(min=0, help="GPUs that pods may request; default: those that are found.", show_default=False),
    ] = None,
    control_plane: Annotated[
        ControlPlane,
        typer.Option(
            help="Our API server, or Kubernetes' own etcd, kube-apiserver, kube-controller-manager and kube-scheduler, "
            "found through $KUBEBUILDER_ASSETS or in the user's cache."
        ),
    ] = ControlPlane.LOCAL,
    legacy: Annotated[
        bool,
        typer.Option(
            "--legacy",
            help="Serve mxjobs.fioravanzo.org and mxjobs.mxnet.mlkube.io, too, as the overlay of that name does on a "
            "cluster; plain `kubectl get mxjobs` then means the first of them.",
        ),
    ] = False,
    restart_backoff: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=600.0,
            help="Seconds that a job waits before its first restart; each further wait is twice as long.",
        ),
    ] = 10.0,
    announce: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Start the cluster: in the foreground until Ctrl-C, or with --detach in the background.

    A cluster that runs already is left as it is: an error here, fine with --detach.
    """
    with extra_needed("local"):
        from mxnet_operator.cli import serve  # noqa: PLC0415
        from mxnet_operator.local.cluster import ClusterOptions  # noqa: PLC0415
        from mxnet_operator.plan import Policy  # noqa: PLC0415

    options = ClusterOptions(cpus, gpus, control_plane.value, legacy)
    policy = Policy(first_backoff=timedelta(seconds=restart_backoff))
    if announce is not None:
        serve.in_background(options, policy, announce)
    elif detach:
        serve.detach(options, policy)
    else:
        serve.in_foreground(options, policy)


@app.command()
def down() -> None:
    """Stop the cluster and wait until every process that it started is gone. Its jobs go with it."""
    with extra_needed("local"):
        from mxnet_operator.local import daemon  # noqa: PLC0415

    with message_console().status("stopping the local cluster"):
        pid = daemon.stop(_files())
    say("the local cluster is not running" if pid is None else f"the local cluster has stopped (pid {pid})")


@app.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show whether the cluster runs, where, what it has and what it uses. Exits with 3 if it doesn't run."""
    with extra_needed("local"):
        from mxnet_operator.cli import local_status  # noqa: PLC0415
        from mxnet_operator.local.state import running_state  # noqa: PLC0415

    files = _files()
    state = running_state(files)
    if state is None:
        idle = local_status.not_running(files)
        if as_json:
            write_line(json.dumps(idle))
        else:
            for line in local_status.not_running_lines(idle, START):
                say(line)
        sys.exit(NOT_RUNNING)
    found = local_status.collect(files, state)
    if as_json:
        write_line(json.dumps(found))
        return
    console = data_console()
    for label, value in local_status.rows(found):
        console.print(Text(f"{label:<11}", style="bold"), end="")
        console.print(value)


@app.command("kubeconfig")
def kubeconfig_path() -> None:
    """Print the path of the cluster's kubeconfig, for: export KUBECONFIG=$(mxjob local kubeconfig)."""
    with extra_needed("local"):
        from mxnet_operator.local.state import running_state  # noqa: PLC0415

    files = _files()
    if running_state(files) is None:
        raise CommandError("the local cluster is not running", hint=f"start it with: {START}")
    write_line(str(files.kubeconfig))


def _files() -> "ClusterFiles":
    from mxnet_operator.local.home import cluster_files, mxjob_home  # noqa: PLC0415

    return cluster_files(mxjob_home())
