"""`mxjob`: the command line for people."""

import importlib.metadata
from typing import Annotated

import typer

from mxnet_operator.cli import delete, describe, get, local, logs, run, validate, wait
from mxnet_operator.cli.errors import Exit, leave, run_app
from mxnet_operator.cli.terminal import write_line

app = typer.Typer(
    name="mxjob",
    help="""Run MXNet training jobs and TVM tunings: MXJobs, on any Kubernetes cluster or on this machine.

    A first run: [bold]mxjob local up --detach[/], [bold]export KUBECONFIG=$(mxjob local kubeconfig)[/],
    [bold]mxjob run -f job.yaml[/].
    """,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=run.EXAMPLES)(run.run)
app.command(epilog=logs.EXAMPLES)(logs.logs)
app.command(epilog=get.EXAMPLES)(get.get)
app.command(epilog=describe.EXAMPLES)(describe.describe)
app.command(epilog=wait.EXAMPLES)(wait.wait)
app.command(epilog=delete.EXAMPLES)(delete.delete)
app.command(epilog=validate.EXAMPLES)(validate.validate)
app.add_typer(local.app, name="local")


def _show_version(asked: bool) -> None:
    if asked:
        try:
            number = importlib.metadata.version("mxnet-operator")
        except importlib.metadata.PackageNotFoundError:
            number = "of a checkout that is not installed"
        write_line(f"mxjob {number}")
        leave(Exit.OK)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


def main() -> None:
    """Entry point of the console script."""
    run_app(app, "mxjob")


if __name__ == "__main__":
    main()
