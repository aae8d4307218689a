"""`--version` option of both programs."""

from collections.abc import Callable

from mxnet_operator.cli.errors import Exit, leave
from mxnet_operator.cli.output.terminal import write_line


def show_version(program: str) -> Callable[[bool], None]:
    """Make the option's callback, which prints the program's name and version and exits."""

    def show(asked: bool) -> None:
        if asked:
            import importlib.metadata  # noqa: PLC0415 - a tenth of what `mxjob --help` costs

            try:
                number = importlib.metadata.version("mxnet-operator")
            except importlib.metadata.PackageNotFoundError:
                number = "of a checkout that is not installed"
            write_line(f"{program} {number}")
            leave(Exit.OK)

    return show
