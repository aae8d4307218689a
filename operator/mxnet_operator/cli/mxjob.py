"""`mxjob`: the command line for users."""

from typing import Annotated

import typer

from mxnet_operator.cli.app import App
from mxnet_operator.cli.errors import run_app
from mxnet_operator.cli.verbs import (
    convert,
    cp,
    dashboard,
    delete,
    describe,
    get,
    init,
    local,
    logs,
    run,
    validate,
    wait,
)
from mxnet_operator.cli.version import show_version

app = App(
    name="mxjob",
    help="""Run MXNet training and TVM tuning jobs (MXJobs) on any Kubernetes cluster or on this machine.

    To start, in the folder of a training script: [bold]mxjob run train.py --workers 2[/].
    """,
)
app.command(epilog=run.EXAMPLES)(run.run)
app.command(epilog=init.EXAMPLES)(init.init)
app.command(epilog=logs.EXAMPLES)(logs.logs)
app.command(epilog=get.EXAMPLES)(get.get)
app.command(epilog=describe.EXAMPLES)(describe.describe)
app.command(epilog=dashboard.EXAMPLES)(dashboard.dashboard)
app.command(epilog=cp.EXAMPLES)(cp.cp)
app.command(epilog=wait.EXAMPLES)(wait.wait)
app.command(epilog=delete.EXAMPLES)(delete.delete)
app.command(epilog=validate.EXAMPLES)(validate.validate)
app.command(epilog=convert.EXAMPLES)(convert.convert)
app.add_typer(local.app, name="local")


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
