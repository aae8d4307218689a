"""`mxjob local`: a cluster on this machine, without root and containers."""

import json
import re
import sys
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Annotated

import typer
from rich.filesize import decimal
from rich.text import Text

from mxnet_operator.api.metadata_rules import label_errors
from mxnet_operator.cli.app import App
from mxnet_operator.cli.command import option, with_options
from mxnet_operator.cli.daemons.home import usable_files
from mxnet_operator.cli.errors import CommandError, UsageError, extra_needed
from mxnet_operator.cli.interrupts import can_ask
from mxnet_operator.cli.output.terminal import data_console, message_console, say, write_line
from mxnet_operator.cli.running.images import image_store
from mxnet_operator.cli.verbs import images
from mxnet_operator.local import daemon
from mxnet_operator.local.claims import lock_holder
from mxnet_operator.local.home import running_state

NOT_RUNNING = 3
"""Exit code of `status` where no cluster runs, as of `systemctl status`."""

_EXTENDED_RESOURCE = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?/[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
"""Name of an extended resource: a domain and a name, as kube-apiserver requires."""


app = App(
    help="""Run a cluster on this machine: API server, controller, and pods as processes. No Kubernetes, no root.

    Its state is under $MXJOB_HOME, by default your user data folder.
    """
)
app.add_typer(images.app, name="image")


@dataclass(frozen=True, kw_only=True)
class Flags:
    detach: bool = option("--detach", "-d", default=False, help="Run in the background; return when ready.")
    cpus: float | None = option(min=0.1, help="CPUs that pods may request; default: this machine's.")
    gpus: int | None = option(
        min=0,
        help="NVIDIA GPUs that pods may request, whether the machine has them or not; default: those found, "
        "limited by CUDA_VISIBLE_DEVICES.",
    )
    gpu_share: int = option(
        default=1,
        min=1,
        max=1000,
        show_default=True,
        help="Containers that may share a GPU; the node offers each GPU this many times.",
    )
    resource: list[str] | None = option(
        metavar="NAME=COUNT",
        help="Extended resource that pods may request, such as amd.com/gpu=2 or example.com/fpga=1, whether the "
        "machine has it or not; repeatable.",
    )
    node_label: list[str] | None = option(
        metavar="KEY=VALUE", help="Label of the node, for pods with a node selector, such as pool=gpus; repeatable."
    )
    legacy: bool = option(
        "--legacy",
        default=False,
        help="Serve mxjobs.fioravanzo.org and mxjobs.mxnet.mlkube.io too, as the overlay `legacy` does on a "
        "cluster; plain `kubectl get mxjobs` then means mxjobs.fioravanzo.org.",
    )
    restart_backoff: float = option(
        default=1.0,
        min=0.0,
        max=600.0,
        show_default=True,
        help="Seconds before the first restart of a job; doubles with each further one.",
    )
    announce: int | None = option(hidden=True, help="Pipe to the process that starts the cluster in the background.")


@app.command()
@with_options
def up(flags: Flags) -> None:
    """Start the cluster: in the foreground until Ctrl-C, or with --detach in the background.

    If the cluster is already running, it is left as it is: an error in the foreground, a success with --detach.
    """
    with extra_needed("local"):
        from mxnet_operator.cli.daemons import local_cluster  # noqa: PLC0415
        from mxnet_operator.local.cluster import ClusterOptions  # noqa: PLC0415
        from mxnet_operator.plan import Policy  # noqa: PLC0415

    resources, labels = map(_resource, flags.resource or ()), map(_label, flags.node_label or ())
    options = ClusterOptions(flags.cpus, flags.gpus, flags.gpu_share, tuple(resources), tuple(labels), flags.legacy)
    policy = Policy(first_backoff=timedelta(seconds=flags.restart_backoff))
    if flags.announce is not None:
        local_cluster.in_background(options, policy, flags.announce)
    elif flags.detach:
        local_cluster.detach(_words(flags))
    else:
        local_cluster.in_foreground(options, policy)


def _words(flags: Flags) -> list[str]:
    """Return the options of a cluster as words of a command line, without those of how it is started."""
    words = []
    for name, value in asdict(replace(flags, detach=False, announce=None)).items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [flag] if value else []
        elif value is not None:
            words += [word for each in (value if isinstance(value, list) else [value]) for word in (flag, str(each))]
    return words


def _resource(text: str) -> tuple[str, int]:
    name, equals, count = text.rpartition("=")
    if not (equals and _EXTENDED_RESOURCE.fullmatch(name) and len(count) < 10 and count.isdecimal()):
        raise UsageError(
            f"--resource {text}: expected NAME=COUNT with a name such as amd.com/gpu and a whole number",
            hint="set CPUs with --cpus; memory is that of this machine" if name in {"cpu", "memory", "pods"} else "",
        )
    if name.rpartition("/")[0].endswith("kubernetes.io"):
        raise UsageError(f"--resource {text}: names under kubernetes.io are reserved for Kubernetes")
    return name, int(count)


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--node-label {text}: expected KEY=VALUE")
    for error in label_errors({key: value}, ""):
        raise UsageError(f"--node-label {text}: {error.detail}")
    return key, value


@app.command()
def down() -> None:
    """Stop the cluster, and wait until every process that it started has ended. Its jobs are lost."""
    with usable_files() as files, message_console().status("stopping the local cluster"):
        pid = daemon.stop(files)
    say("the local cluster is not running" if pid is None else f"the local cluster has stopped (pid {pid})")


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show whether the cluster is running, its address, capacity, jobs and usage. Exits with 3 if it is not running."""
    with usable_files() as files:
        from mxnet_operator.cli.daemons import local_state  # noqa: PLC0415

        state = running_state(files)
        idle = {} if state is not None else local_state.not_running(files)
    if state is None:
        if as_json:
            write_line(json.dumps(idle))
        else:
            for line in local_state.not_running_lines(idle):
                say(line)
        sys.exit(NOT_RUNNING)
    found = local_state.collect(files, state)
    if as_json:
        write_line(json.dumps(found))
        return
    console = data_console()
    for label, value in local_state.rows(found):
        console.print(Text(f"{label:<11}", style="bold"), end="")
        console.print(value)


@app.command()
def prune(force: Annotated[bool, typer.Option("--force", "-f", help="Don't ask before deleting.")] = False) -> None:
    """Delete what no unfinished job needs: ended jobs with their logs and files, copies of folders, environments.

    Folders of PersistentVolumeClaims, added images and uv's cache stay.
    """
    with usable_files() as files, image_store() as store:
        from mxnet_operator.cli.daemons import local_state  # noqa: PLC0415

        home = files.root.parent
        if running_state(files) is None and (pid := lock_holder(files.lock)) is not None:
            raise CommandError(f"the local cluster is starting or stopping (pid {pid})", hint="try again in a moment")
        found = local_state.leftovers(files, store, local_state.use_of(files))
        lines = found.lines()
        if not lines:
            say(f"nothing to delete in {home}")
            return
        say(f"in {home}, no unfinished job needs:")
        for line in lines:
            say(f"  {line}")
        if not force and not (can_ask() and typer.confirm("Delete all this?", err=True)):
            raise CommandError("nothing was deleted", hint="to delete without a question: mxjob local prune --force")
        size = found.size()
        local_state.delete(files, store, found)
        say(f"freed {decimal(size)}")


@app.command("kubeconfig")
def kubeconfig_path() -> None:
    """Print the path of the cluster's kubeconfig, for: export KUBECONFIG=$(mxjob local kubeconfig)."""
    with usable_files() as files:
        state = running_state(files)
    if state is None:
        raise CommandError("the local cluster is not running", hint="start it with: mxjob local up --detach")
    write_line(str(files.kubeconfig))
