"""`mxnet-operator`: what runs in a cluster: the controller, and the definition of its resource."""

import asyncio
from enum import StrEnum
from typing import Annotated, Any

import typer
import yaml

from mxnet_operator.cli.connection import ContextOption, KubeconfigOption, Target, connect
from mxnet_operator.cli.errors import Exit, extra_needed, leave, run_app
from mxnet_operator.cli.interrupts import first_signal
from mxnet_operator.cli.terminal import write_line

app = typer.Typer(
    name="mxnet-operator",
    help="""The controller of MXJobs (kubeflow.org/v1), and the definition of MXJob.

    To try it on a cluster: [bold]mxnet-operator crd | kubectl apply -f -[/], then [bold]mxnet-operator run[/].
    On this machine without Kubernetes, [bold]mxjob local up[/] runs both.
    """,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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


@app.command()
def run(  # noqa: PLR0917 - options
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAME",
            help="Run the jobs of this namespace only; default: all.",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="The least that is logged.")] = LogLevel.INFO,
    log_format: Annotated[LogFormat, typer.Option(help="Lines for people, or one JSON object per line.")] = (
        LogFormat.TEXT
    ),
    workers: Annotated[int, typer.Option(min=1, max=256, help="Jobs that are looked at at a time.")] = 8,
) -> None:
    """Run the jobs of a cluster until SIGTERM or Ctrl-C; the log goes to standard error.

    The API server is that of --kubeconfig, $KUBECONFIG or ~/.kube/config, or in a pod without these, that of the pod's
    own cluster. A server that is away is waited for. Stopping leaves jobs running; the next start takes them up again.
    """
    with extra_needed("controller"):
        from mxnet_operator.controller.log_format import configure_logging  # noqa: PLC0415

    configure_logging(log_level.value, log_format.value)
    asyncio.run(_run(Target(kubeconfig, context, namespace), workers))


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition of MXJob as YAML: `mxnet-operator crd | kubectl apply -f -`."""
    from mxnet_operator.api.crd import custom_resource_definition  # noqa: PLC0415

    write_line(yaml.safe_dump(custom_resource_definition(), sort_keys=False).rstrip())


async def _run(target: Target, workers: int) -> None:
    from mxnet_operator.controller.controller import Controller  # noqa: PLC0415

    with first_signal() as asked_to_stop:
        async with connect(target) as client:
            running = asyncio.create_task(Controller(client, target.namespace, workers=workers).run())
            either: set[asyncio.Future[Any]] = {running, asked_to_stop}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not asked_to_stop.done():
                await running  # Raises what it died of.
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    leave(Exit.OK)


def main() -> None:
    """Entry point of the console script."""
    run_app(app, "mxnet-operator")


if __name__ == "__main__":
    main()
