"""`mxnet-operator`: what runs in a cluster: the controller, and the definitions of its resources."""

import asyncio
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from mxnet_operator.cli.app import App
from mxnet_operator.cli.connection import ContextOption, Target
from mxnet_operator.cli.errors import Exit, extra_needed, leave, run_app
from mxnet_operator.cli.terminal import write_line
from mxnet_operator.cli.version import show_version
from mxnet_operator.views.durations import seconds_of

_ENV: Final = "MXNET_OPERATOR_"
_ELECTION: Final = "Leader election"
_ADDRESSES: Final = "Addresses"
_LOG: Final = "Log"

app = App(
    name="mxnet-operator",
    help="""The controller of MXJobs, and the definitions of their kinds.

    To try it on a cluster: [bold]mxnet-operator crd | kubectl apply -f -[/], then [bold]mxnet-operator run[/].
    On this machine without Kubernetes, [bold]mxjob local up[/] runs both.
    """,
)


class LogLevel(StrEnum):
    """How much the log says."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """Who the log is for."""

    TEXT = "text"
    JSON = "json"


def _seconds(text: str | float) -> float:
    """A duration as the Kubernetes components take it; a number alone is seconds."""
    try:
        return seconds_of(str(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version("mxnet-operator"), is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None: ...


@app.command()
def run(  # noqa: PLR0917 - options
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            "--kubeconfig",
            metavar="FILE",
            envvar="USE_KUBE_CONFIG",
            help="Kubeconfig. Default: $KUBECONFIG, else ~/.kube/config, else the pod's own service account.",
            show_default=False,
        ),
    ] = None,
    context: ContextOption = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAME",
            envvar=f"{_ENV}NAMESPACES",
            help="Run the jobs of this namespace only, which takes a Role there and no ClusterRole; may be repeated, or"
            " name several with commas. Default: all namespaces.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, envvar=f"{_ENV}WORKERS", help="Jobs that are worked on at once.")
    ] = 8,
    leader_elect: Annotated[
        bool,
        typer.Option(
            "--leader-elect/--no-leader-elect",
            envvar=f"{_ENV}LEADER_ELECT",
            help="Act only while holding the Lease; of several, one acts and the others stand by with warm caches.",
            rich_help_panel=_ELECTION,
        ),
    ] = True,
    lease_name: Annotated[
        str,
        typer.Option(
            "--leader-elect-resource-name",
            metavar="NAME",
            envvar=f"{_ENV}LEADER_ELECT_RESOURCE_NAME",
            help="The Lease; operators for different namespaces need one each.",
            rich_help_panel=_ELECTION,
        ),
    ] = "mxnet-operator",
    lease_namespace: Annotated[
        str | None,
        typer.Option(
            "--leader-elect-resource-namespace",
            metavar="NAME",
            envvar=[f"{_ENV}LEADER_ELECT_RESOURCE_NAMESPACE", "MY_POD_NAMESPACE"],
            help="Where the Lease is. Default: the pod's own namespace, or the kubeconfig context's.",
            show_default=False,
            rich_help_panel=_ELECTION,
        ),
    ] = None,
    lease_duration: Annotated[
        float,
        typer.Option(
            "--leader-elect-lease-duration",
            parser=_seconds,
            metavar="DURATION",
            envvar=f"{_ENV}LEADER_ELECT_LEASE_DURATION",
            help="How long the others wait for a renewal before they take over; whole seconds.",
            show_default="5s",
            rich_help_panel=_ELECTION,
        ),
    ] = 5,
    renew_deadline: Annotated[
        float,
        typer.Option(
            "--leader-elect-renew-deadline",
            parser=_seconds,
            metavar="DURATION",
            envvar=f"{_ENV}LEADER_ELECT_RENEW_DEADLINE",
            help="How long after its last renewal a leader still acts; less than the lease duration.",
            show_default="3.5s",
            rich_help_panel=_ELECTION,
        ),
    ] = 3.5,
    retry_period: Annotated[
        float,
        typer.Option(
            "--leader-elect-retry-period",
            parser=_seconds,
            metavar="DURATION",
            envvar=f"{_ENV}LEADER_ELECT_RETRY_PERIOD",
            help="Time between renewals, and between attempts to take the Lease.",
            show_default="1s",
            rich_help_panel=_ELECTION,
        ),
    ] = 1,
    metrics_address: Annotated[
        str | None,
        typer.Option(
            "--metrics-bind-address",
            metavar="HOST:PORT",
            envvar=f"{_ENV}METRICS_BIND_ADDRESS",
            help="Where /metrics is served, over plain HTTP unless a certificate is given; :PORT is every address of"
            " the machine, 0 turns it off.",
            show_default="127.0.0.1:8080; in a pod :8080",
            rich_help_panel=_ADDRESSES,
        ),
    ] = None,
    metrics_certificate: Annotated[
        Path | None,
        typer.Option(
            "--metrics-cert-path",
            metavar="FOLDER",
            envvar=f"{_ENV}METRICS_CERT_PATH",
            help="Serve /metrics over TLS with tls.crt and tls.key of this folder, and only to clients whose bearer"
            " token the API server lets get /metrics. Default: plain HTTP for everybody.",
            show_default=False,
            rich_help_panel=_ADDRESSES,
        ),
    ] = None,
    health_address: Annotated[
        str | None,
        typer.Option(
            "--health-probe-bind-address",
            metavar="HOST:PORT",
            envvar=f"{_ENV}HEALTH_PROBE_BIND_ADDRESS",
            help="Where /readyz, /livez and /healthz are served; written as above.",
            show_default="127.0.0.1:8081; in a pod :8081",
            rich_help_panel=_ADDRESSES,
        ),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(envvar=f"{_ENV}LOG_LEVEL", help="The least that is logged.", rich_help_panel=_LOG)
    ] = LogLevel.INFO,
    log_format: Annotated[
        LogFormat,
        typer.Option(
            envvar=f"{_ENV}LOG_FORMAT",
            help="Lines for people, or one JSON object per line.",
            rich_help_panel=_LOG,
        ),
    ] = LogFormat.TEXT,
) -> None:
    """Run the jobs of a cluster until SIGTERM or Ctrl-C; the log goes to standard error.

    Jobs of every kind whose CRD is installed: MXJob, MXNetJob and those of the overlay `legacy`. The API server is that
    of --kubeconfig, $KUBECONFIG or ~/.kube/config, or in a pod without these, that of the pod's own cluster. A server
    that is away is waited for. Stopping leaves jobs running; the next start takes them up again.

    Several may run for one cluster: they elect one that acts. Each flag can be given by the environment variable named
    with it; a flag goes before its variable. Durations are written 15s, 500ms, 1.5h or 1h30m.
    """
    with extra_needed("controller"):
        from mxnet_operator.cli import operate  # noqa: PLC0415
        from mxnet_operator.controller.log_format import configure_logging  # noqa: PLC0415

    election = None
    if leader_elect:
        times = operate.lease_times(lease_duration, renew_deadline, retry_period)
        member = os.environ.get("MY_POD_NAME")
        election = operate.Election(name=lease_name, namespace=lease_namespace, times=times, member=member)
    options = operate.Options(
        target=Target(kubeconfig, context),
        namespaces=operate.names_in(namespace or ()),
        workers=workers,
        election=election,
        metrics=operate.address(metrics_address, 8080),
        health=operate.address(health_address, 8081),
        metrics_certificate=metrics_certificate,
    )
    configure_logging(log_level.value, log_format.value)
    asyncio.run(operate.operate(options))
    leave(Exit.OK)


@app.command()
def crd(
    legacy: Annotated[
        bool,
        typer.Option(
            "--legacy",
            help="Those of fioravanzo.org and mxnet.mlkube.io instead; with them, plain `kubectl get mxjobs` means the "
            "first of these.",
        ),
    ] = False,
) -> None:
    """Print the CustomResourceDefinitions as YAML: `mxnet-operator crd | kubectl apply -f -`."""
    from mxnet_operator.api.definitions import definitions, legacy_definitions  # noqa: PLC0415
    from mxnet_operator.api.manifest_text import dump_all  # noqa: PLC0415

    wanted = legacy_definitions() if legacy else definitions()
    write_line(dump_all(wanted, allow_unicode=False).rstrip())


def main() -> None:
    """Entry point of the console script."""
    run_app(app, "mxnet-operator")


if __name__ == "__main__":
    main()
