"""The process behind `mxjob local up`: the local cluster and its controller, in the foreground or detached."""

import asyncio
import contextlib
import errno
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
from rich.text import Text

from mxnet_operator.api.printable import printable
from mxnet_operator.cli.daemons.home import usable_files, usable_home
from mxnet_operator.cli.errors import CommandError, Exit, leave
from mxnet_operator.cli.interrupts import first_signal
from mxnet_operator.cli.output.terminal import message_console, say
from mxnet_operator.controller.controller import Controller
from mxnet_operator.integrations.registry import Settings, integrations
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.lease import LEASE_NAME, LeaderElector, LeaseTimes
from mxnet_operator.local import daemon
from mxnet_operator.local.claims import AlreadyRunningError, NoFreeSubnetError
from mxnet_operator.local.cluster import ClusterOptions, ComponentDiedError, run_cluster
from mxnet_operator.local.home import ClusterState, full_disk, installation, make_cluster_folder, running_state
from mxnet_operator.plan import Policy

_IDENTITY = "mxjob-local"
_TIMES = LeaseTimes(duration=3600, renew_deadline=3000.0, retry_period=600.0)

_log = logging.getLogger(__name__)


def in_foreground(options: ClusterOptions, policy: Policy) -> None:
    _log_to_stderr("%(asctime)s %(message)s", "%H:%M:%S")
    for quiet in ("mxnet_operator.kube", "mxnet_operator.controller.controller"):
        logging.getLogger(quiet).setLevel(logging.WARNING)
    spinner = message_console().status("starting")
    spinner.start()

    def ready(state: ClusterState) -> None:
        spinner.stop()
        _say_how_to_use(state)
        say("press Ctrl-C to stop it and everything that it runs\n")

    try:
        _serve(options, policy, lambda step: spinner.update(Text(f"starting: {step}")), ready)
    finally:
        spinner.stop()
    say("the local cluster has stopped")
    leave(Exit.OK)


def in_background(options: ClusterOptions, policy: Policy, announce: int) -> None:
    """Run the cluster until the first signal; `announce` is the pipe to the process that started it."""
    _log_to_stderr("%(asctime)s %(levelname)s %(name)s: %(message)s", None)
    announcer = daemon.Announcer(announce)
    _serve(options, policy, announcer.step, lambda _: announcer.ready())


def detach(words: Sequence[str]) -> None:
    """Start a cluster with these options in the background and return once it is ready; leave one that is running."""
    try:
        state = _start_detached(words)
    except AlreadyRunningError as error:
        say(f"{error}; its options are unchanged: to set others, stop it first with mxjob local down")
        return
    _say_how_to_use(state)


def ensure_running() -> None:
    """Start a cluster with default options in the background, and say so, unless one runs.

    One that runs is left, with its jobs, also where an upgrade has replaced its code.
    """
    with usable_files() as files:
        state = running_state(files)
    if state is not None:
        if state.installation != installation():
            say(
                "the local cluster still runs the mxnet-operator that was installed before this one; to replace it when"
                " its jobs have ended: mxjob local down",
                style="yellow",
            )
        return
    say("no other cluster is chosen: starting the local cluster; stop it with: mxjob local down")
    with contextlib.suppress(AlreadyRunningError):  # another command was faster
        _start_detached()


def _start_detached(words: Sequence[str] = ()) -> ClusterState:
    command = [sys.executable, "-P", "-m", "mxnet_operator.cli.mxjob", "local", "up", *words]
    home = Path()
    try:
        with usable_home() as home, message_console().status("starting the local cluster") as spinner:
            return daemon.start_detached(home, command, lambda step: spinner.update(Text(f"starting: {step}")))
    except daemon.BusyError as error:
        raise CommandError(str(error), hint="stop it with: mxjob local down") from error
    except daemon.StartFailedError as error:
        full = full_disk(home, OSError(errno.ENOSPC, ""))  # then its log is empty
        raise CommandError(f"{error}; the end of its log:\n{error.log_tail}", hint=full) from error


def _serve(
    options: ClusterOptions, policy: Policy, on_step: Callable[[str], None], on_ready: Callable[[ClusterState], None]
) -> None:
    make = partial(make_controller, policy=policy, settings=Settings(gang_scheduling="local"))

    async def main(home: Path) -> None:
        stop = asyncio.Event()
        with first_signal() as interrupted:
            interrupted.add_done_callback(lambda _: stop.set())
            await run_cluster(home, options, make, on_step=on_step, on_ready=on_ready, stop=stop)

    try:
        with usable_home() as home:
            daemon.wait_for_other(make_cluster_folder(home), on_step)
            asyncio.run(main(home))
    except (AlreadyRunningError, daemon.BusyError) as error:
        raise CommandError(str(error), hint="stop it with: mxjob local down") from error
    except NoFreeSubnetError as error:
        raise CommandError(str(error)) from error
    except ComponentDiedError as error:
        _log.error("%s", error, exc_info=error.__cause__)
        hint = "this is a bug: please report it with the log"
        raise CommandError(f"{error}: {error.__cause__}", hint=hint) from error


def make_controller(
    client: Client, job_url_template: str = "", *, policy: Policy | None = None, settings: Settings | None = None
) -> Controller:
    """Create the controller of a local cluster; it holds the Lease, so that `mxnet-operator run` beside it stands by.

    It renews every ten minutes, so that an idle cluster stays idle. Nobody waits for the Lease of a cluster that ended:
    its API server goes with it, and a cluster that starts again has the same identity.
    """
    elector = LeaderElector(client, client.namespace, LEASE_NAME, identity=_IDENTITY, times=_TIMES)
    policy = msgspec.structs.replace(policy or Policy(), job_url_template=job_url_template)
    return Controller(client, elector=elector, policy=policy, integrations=integrations(settings))


class PrintableFormatter(logging.Formatter):
    """Log formatter that escapes control characters, since messages quote text from outside."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _log_to_stderr(log_format: str, date_format: str | None) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter(log_format, date_format))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("mxnet_operator").setLevel(logging.INFO)


def _say_how_to_use(state: ClusterState) -> None:
    say(f"the local cluster is ready at {state.server} (pid {state.pid})", style="green")
    say(f"  {state.dashboard}   shows its jobs in a browser")
    say("  mxjob run train.py                            runs a script and shows its log")
    say("  export KUBECONFIG=$(mxjob local kubeconfig)   then kubectl and Airflow use it, too")
