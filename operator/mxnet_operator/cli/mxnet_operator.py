"""`mxnet-operator`: the controller, and the CustomResourceDefinitions that it needs."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mxnet_operator.api.job_url import template_mistake
from mxnet_operator.cli.app import App
from mxnet_operator.cli.errors import Exit, extra_needed, leave, run_app
from mxnet_operator.cli.output.terminal import write_line
from mxnet_operator.cli.server.connection import ContextOption, Target
from mxnet_operator.readers.durations import seconds_of

_ENV: Final = "MXNET_OPERATOR_"
_ELECTION: Final = "Leader election"
_ADDRESSES: Final = "Addresses"
_LOG: Final = "Log"

app = App(
    name="mxnet-operator",
    help="""Run the controller of MXJobs, or print the CustomResourceDefinitions that it needs.

    To try it on a cluster: [bold]mxnet-operator crd | kubectl apply -f -[/], then [bold]mxnet-operator run[/].
    On this machine without Kubernetes, [bold]mxjob local up[/] runs both.
    """,
)


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


def _seconds(text: str | float) -> float:
    """Parse a duration as the Kubernetes components take it; a number alone is seconds."""
    try:
        return seconds_of(str(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _option(*flags: str, help: str, panel: str | None = None, **more: Any) -> Any:  # noqa: A002 - typer's word
    """Return an option with an environment variable of its name, unless another is given."""
    variable = _ENV + flags[0].partition("/")[0].removeprefix("--").replace("-", "_").upper()
    return typer.Option(*flags, help=help, rich_help_panel=panel, **{"envvar": variable} | more)


app.with_version("mxnet-operator")


@app.command()
def run(  # noqa: PLR0917 - options
    kubeconfig: Annotated[
        str | None,
        _option(
            "--kubeconfig",
            metavar="FILE",
            envvar="USE_KUBE_CONFIG",
            help="Kubeconfig. Default: $KUBECONFIG, else ~/.kube/config, else the pod's own service account.",
        ),
    ] = None,
    context: ContextOption = None,
    namespace: Annotated[
        list[str] | None,
        _option(
            "--namespace",
            "-n",
            metavar="NAME",
            envvar=f"{_ENV}NAMESPACES",
            help="Namespace to watch, which needs a Role there and no ClusterRole; repeatable, or several with commas."
            " Default: all namespaces.",
        ),
    ] = None,
    workers: Annotated[int, _option("--workers", min=1, max=256, help="Jobs to reconcile concurrently.")] = 8,
    gang_scheduling: Annotated[
        str,
        _option(
            "--gang-scheduling",
            metavar="NAME",
            help="Gang scheduler, which places all pods of a job or none: native, coscheduling or volcano. auto:"
            " Kubernetes' own pod groups where the server has them, else those of scheduler-plugins where their CRD is"
            " installed. none: no gang scheduler.",
        ),
    ] = "auto",
    gang_scheduler_name: Annotated[
        str,
        _option(
            "--gang-scheduler-name",
            metavar="NAME",
            help="schedulerName of gang-scheduled pods whose template has none; for coscheduling and volcano. Default:"
            " the cluster's default scheduler, and for volcano `volcano`.",
        ),
    ] = "",
    job_url_template: Annotated[
        str,
        _option(
            "--job-url-template",
            metavar="URL",
            help="Address of a job's page in a dashboard of yours, with {namespace}, {name} and {uid}: it becomes the"
            " status.url of every MXJob, and the link of its Airflow task. http or https.",
        ),
    ] = "",
    leader_elect: Annotated[
        bool,
        _option(
            "--leader-elect/--no-leader-elect",
            help="Reconcile only while holding the leader election Lease; other replicas stand by with warm caches.",
            panel=_ELECTION,
        ),
    ] = True,
    lease_name: Annotated[
        str,
        _option(
            "--leader-elect-resource-name",
            metavar="NAME",
            help="Name of the Lease; operators that watch different namespaces need one each.",
            panel=_ELECTION,
        ),
    ] = "mxnet-operator",
    lease_namespace: Annotated[
        str | None,
        _option(
            "--leader-elect-resource-namespace",
            metavar="NAME",
            envvar=[f"{_ENV}LEADER_ELECT_RESOURCE_NAMESPACE", "MY_POD_NAMESPACE"],
            help="Namespace of the Lease. Default: the pod's own, or that of the kubeconfig context.",
            panel=_ELECTION,
        ),
    ] = None,
    lease_duration: Annotated[
        float,
        _option(
            "--leader-elect-lease-duration",
            parser=_seconds,
            metavar="DURATION",
            help="How long standby replicas wait after a renewal before they take over; whole seconds.",
            show_default="5s",
            panel=_ELECTION,
        ),
    ] = 5,
    renew_deadline: Annotated[
        float,
        _option(
            "--leader-elect-renew-deadline",
            parser=_seconds,
            metavar="DURATION",
            help="How long a leader leads after its last renewal; less than --leader-elect-lease-duration.",
            show_default="3.5s",
            panel=_ELECTION,
        ),
    ] = 3.5,
    retry_period: Annotated[
        float,
        _option(
            "--leader-elect-retry-period",
            parser=_seconds,
            metavar="DURATION",
            help="Time between attempts to acquire or renew the Lease.",
            show_default="1s",
            panel=_ELECTION,
        ),
    ] = 1,
    metrics_address: Annotated[
        str | None,
        _option(
            "--metrics-bind-address",
            metavar="HOST:PORT",
            help="Address of /metrics; plain HTTP unless --metrics-cert-path is given. :PORT listens on all interfaces,"
            " 0 turns it off.",
            show_default="127.0.0.1:8080; in a pod :8080",
            panel=_ADDRESSES,
        ),
    ] = None,
    metrics_certificate: Annotated[
        Path | None,
        _option(
            "--metrics-cert-path",
            metavar="FOLDER",
            help="Folder with tls.crt and tls.key: serve /metrics over TLS, and only to clients whose bearer token may"
            " get /metrics (TokenReview, SubjectAccessReview). Default: plain HTTP, no authentication.",
            panel=_ADDRESSES,
        ),
    ] = None,
    health_address: Annotated[
        str | None,
        _option(
            "--health-probe-bind-address",
            metavar="HOST:PORT",
            help="Address of /readyz, /livez and /healthz, written like --metrics-bind-address.",
            show_default="127.0.0.1:8081; in a pod :8081",
            panel=_ADDRESSES,
        ),
    ] = None,
    log_level: Annotated[
        LogLevel, _option("--log-level", help="Least severe level to log.", panel=_LOG)
    ] = LogLevel.INFO,
    log_format: Annotated[
        LogFormat, _option("--log-format", help="text: lines for people; json: one JSON object per line.", panel=_LOG)
    ] = LogFormat.TEXT,
) -> None:
    """Run the controller until SIGTERM or Ctrl-C; the log goes to standard error.

    It reconciles jobs of every kind whose CRD is installed: MXJob, MXNetJob and those of the overlay `legacy`. The API
    server is that of --kubeconfig, $KUBECONFIG or ~/.kube/config, or in a pod without these, that of its cluster. If it
    can't be reached, the controller waits. Jobs keep running while the controller is stopped.

    Several replicas may run in one cluster: they elect a leader. Each flag can be set by the environment variable named
    with it; the flag takes precedence. Durations are written 15s, 500ms, 1.5h or 1h30m.
    """
    with extra_needed("controller"):
        import uvloop  # noqa: PLC0415

        from mxnet_operator.cli.daemons import controller  # noqa: PLC0415
        from mxnet_operator.controller.log_format import configure_logging  # noqa: PLC0415
        from mxnet_operator.integrations.registry import Settings, integrations  # noqa: PLC0415

    if job_url_template and (mistake := template_mistake(job_url_template)):
        raise typer.BadParameter(f"--job-url-template {job_url_template!r} {mistake}")
    try:
        election = None
        if leader_elect:
            times = controller.lease_times(lease_duration, renew_deadline, retry_period)
            member = os.environ.get("MY_POD_NAME")
            election = controller.Election(name=lease_name, namespace=lease_namespace, times=times, member=member)
        options = controller.Options(
            target=Target(kubeconfig, context),
            namespaces=controller.names_in(namespace or ()),
            workers=workers,
            election=election,
            metrics=controller.address(metrics_address, 8080),
            health=controller.address(health_address, 8081),
            integrations=integrations(
                Settings(gang_scheduling=gang_scheduling, gang_scheduler_name=gang_scheduler_name)
            ),
            job_url_template=job_url_template,
            metrics_certificate=metrics_certificate,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    configure_logging(log_level.value, log_format.value)
    uvloop.run(controller.run(options))
    leave(Exit.OK)


@app.command()
def crd(
    legacy: Annotated[
        bool,
        typer.Option(
            "--legacy",
            help="Print the CRDs of fioravanzo.org and mxnet.mlkube.io instead. Once installed, plain `kubectl get "
            "mxjobs` means mxjobs.fioravanzo.org.",
        ),
    ] = False,
) -> None:
    """Print the CustomResourceDefinitions as YAML: `mxnet-operator crd | kubectl apply -f -`."""
    from mxnet_operator.api.crd import definitions, legacy_definitions  # noqa: PLC0415
    from mxnet_operator.api.manifest_text import dump_all  # noqa: PLC0415

    wanted = legacy_definitions() if legacy else definitions()
    write_line(dump_all(wanted, allow_unicode=False).rstrip())


def main() -> None:
    run_app(app, "mxnet-operator")


if __name__ == "__main__":
    main()
