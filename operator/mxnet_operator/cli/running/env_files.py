"""Environment variables as written on the command line and in the files of `--env-file`."""

import os

from mxnet_operator.api.manifest_text import ManifestError, decoded
from mxnet_operator.cli.errors import CommandError, Exit


def variable(source: str, text: str) -> tuple[str, str]:
    """Parse `NAME=VALUE`, or `NAME`, whose value is that of this process.

    Raises:
        CommandError: the text has no name, or the variable isn't set here.
    """
    name, separator, value = text.partition("=")
    if not name or any(each.isspace() for each in name):
        raise CommandError(f"{source}: {text!r} is neither NAME=VALUE nor NAME", code=Exit.USAGE)
    if separator:
        return name, value
    if name not in os.environ:
        raise CommandError(
            f"{source}: {name} has no value, and this shell doesn't export it",
            hint=f"give the value: {name}=VALUE; or export it: export {name}",
            code=Exit.USAGE,
        )
    return name, os.environ[name]


def read_variables(file: str) -> list[tuple[str, str]]:
    """Read a file as `docker run --env-file` does: a variable a line, `#` begins a comment line, quotes are kept.

    Raises:
        CommandError: it can't be read, or a line is no variable.
    """
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - the path as written
            lines = decoded(opened.read()).splitlines()
    except OSError as error:
        raise CommandError(f"--env-file {file}: {error.strerror or error}", code=Exit.USAGE) from error
    except ManifestError as error:
        raise CommandError(f"--env-file {file}: {error}", code=Exit.USAGE) from error
    return [
        variable(f"--env-file {file}, line {number}", line.lstrip())
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
