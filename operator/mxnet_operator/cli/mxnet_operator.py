"""`mxnet-operator`: the controller, and the CustomResourceDefinitions that it needs."""

import os
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from mxnet_operator.api.job_url import template_mistake
from mxnet_operator.cli.app import App
from mxnet_operator.cli.command import option, with_options
from mxnet_operator.cli.errors import Exit, extra_needed, leave, run_app
from mxnet_operator.cli.output.terminal import write_line
from mxnet_operator.cli.output.times import duration
from mxnet_operator.cli.server.connection import ContextOption, Target

_ENV: Final = "MXNET_OPERATOR_"

app = App(
    name="mxnet-operator",
    help="""Run the controller of MXJobs, or print the CustomResourceDefinitions that it needs.

    To try it on a cluster: [bold]mxnet-operator crd | kubectl apply -f -[/], then [bold]mxnet-operator run[/].
    On this machine without Kubernetes, [bold]mxjob local up[/] runs both.
    """,
)


_flag = partial(option, show_default=True)
_election = partial(_flag, panel="Leader election")
_lease_time = partial(_election, metavar="DURATION", parser=duration)
_address = partial(_flag, panel="Addresses")
_log = partial(_flag, panel="Log")


app.with_version("mxnet-operator")


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, kw_only=True)
class Flags:
    kubeconfig: str | None = _flag(
        metavar="FILE",
        envvar="USE_KUBE_CONFIG",
        help="Kubeconfig. Default: $KUBECONFIG, else ~/.kube/config, else the pod's own service account.",
    )
    context: ContextOption = None
    namespace: list[str] | None = _flag(
        "--namespace",
        "-n",
        metavar="NAME",
        envvar=f"{_ENV}NAMESPACES",
        help="Namespace to watch, which needs a Role there and no ClusterRole; repeatable, or several with commas."
        " Default: all namespaces.",
    )
    workers: int = _flag(default=8, min=1, max=256, help="Jobs to reconcile concurrently.")
    gang_scheduling: str = _flag(
        default="auto",
        metavar="NAME",
        help="Gang scheduler, which places all pods of a job or none: native, coscheduling or volcano. auto:"
        " Kubernetes' own pod groups where the server has them, else those of scheduler-plugins where their CRD is"
        " installed. none: no gang scheduler.",
    )
    gang_scheduler_name: str = _flag(
        default="",
        metavar="NAME",
        help="schedulerName of gang-scheduled pods whose template has none; for coscheduling and volcano. Default:"
        " the cluster's default scheduler, and for volcano `volcano`.",
    )
    job_url_template: str = _flag(
        default="",
        metavar="URL",
        help="Address of a job's page in a dashboard of yours, with {namespace}, {name} and {uid}: it becomes the"
        " status.url of every MXJob, and the link of its Airflow task. http or https.",
    )
    leader_elect: bool = _election(
        default=True,
        help="Reconcile only while holding the leader election Lease; other replicas stand by with warm caches.",
    )
    leader_elect_resource_name: str = _election(
        default="mxnet-operator",
        metavar="NAME",
        help="Name of the Lease; operators that watch different namespaces need one each.",
    )
    leader_elect_resource_namespace: str | None = _election(
        metavar="NAME",
        envvar=[f"{_ENV}LEADER_ELECT_RESOURCE_NAMESPACE", "MY_POD_NAMESPACE"],
        help="Namespace of the Lease. Default: the pod's own, or that of the kubeconfig context.",
    )
    leader_elect_lease_duration: float = _lease_time(
        default=5,
        help="How long standby replicas wait after a renewal before they take over; whole seconds.",
        show_default="5s",
    )
    leader_elect_renew_deadline: float = _lease_time(
        default=3.5,
        help="How long a leader leads after its last renewal; less than --leader-elect-lease-duration.",
        show_default="3.5s",
    )
    leader_elect_retry_period: float = _lease_time(
        default=1, help="Time between attempts to acquire or renew the Lease.", show_default="1s"
    )
    metrics_bind_address: str | None = _address(
        metavar="HOST:PORT",
        help="Address of /metrics; plain HTTP unless --metrics-cert-path is given. :PORT listens on all interfaces,"
        " 0 turns it off.",
        show_default="127.0.0.1:8080; in a pod :8080",
    )
    metrics_cert_path: Path | None = _address(
        metavar="FOLDER",
        help="Folder with tls.crt and tls.key: serve /metrics over TLS, and only to clients whose bearer token may"
        " get /metrics (TokenReview, SubjectAccessReview). Default: plain HTTP, no authentication.",
    )
    health_probe_bind_address: str | None = _address(
        metavar="HOST:PORT",
        help="Address of /readyz, /livez and /healthz, written like --metrics-bind-address.",
        show_default="127.0.0.1:8081; in a pod :8081",
    )
    log_level: LogLevel = _log(default=LogLevel.INFO, help="Least severe level to log.")
    log_format: LogFormat = _log(default=LogFormat.TEXT, help="text: lines for people; json: one JSON object per line.")


@app.command()
@partial(with_options, variables=_ENV)
def run(flags: Flags) -> None:
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

    template = flags.job_url_template
    if template and (mistake := template_mistake(template)):
        raise typer.BadParameter(f"--job-url-template {template!r} {mistake}")
    try:
        election = None
        if flags.leader_elect:
            times = controller.lease_times(
                flags.leader_elect_lease_duration, flags.leader_elect_renew_deadline, flags.leader_elect_retry_period
            )
            member = os.environ.get("MY_POD_NAME")
            election = controller.Election(
                name=flags.leader_elect_resource_name,
                namespace=flags.leader_elect_resource_namespace,
                times=times,
                member=member,
            )
        options = controller.Options(
            target=Target(flags.kubeconfig, flags.context),
            namespaces=controller.names_in(flags.namespace or ()),
            workers=flags.workers,
            election=election,
            metrics=controller.address(flags.metrics_bind_address, 8080),
            health=controller.address(flags.health_probe_bind_address, 8081),
            integrations=integrations(
                Settings(gang_scheduling=flags.gang_scheduling, gang_scheduler_name=flags.gang_scheduler_name)
            ),
            job_url_template=template,
            metrics_certificate=flags.metrics_cert_path,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    configure_logging(flags.log_level.value, flags.log_format.value)
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
