"""`--version` option of both programs."""

from collections.abc import Callable

from mxnet_operator.cli.errors import Exit, leave
from mxnet_operator.cli.output.terminal import write_line


def show_version(program: str) -> Callable[[bool], None]:
    """Make the option's callback, which prints the program's name and version and exits."""

    def show(asked: bool) -> None:
        if asked:
            write_line(f"{program} {_number()}")
            leave(Exit.OK)

    return show


def _number() -> str:
    """Read the installed version, and the commit of the checkout that it was installed from, if there is one."""
    import importlib.metadata  # noqa: PLC0415 - a tenth of what `mxjob --help` costs
    import json  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    try:
        installed = importlib.metadata.distribution("mxnet-operator")
    except importlib.metadata.PackageNotFoundError:
        return "of a checkout that is not installed"
    scheme, _, folder = json.loads(installed.read_text("direct_url.json") or "{}").get("url", "").partition("://")
    if scheme != "file":
        return installed.version
    describe = ["git", "-C", folder, "describe", "--always", "--dirty", "--exclude=*"]
    try:
        commit = subprocess.run(describe, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # no git, a wheel, or a folder that is gone
        return installed.version
    return f"{installed.version} (checkout at {commit})"
