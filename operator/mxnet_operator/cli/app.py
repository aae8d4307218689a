"""Shared behaviour of the command lines: Typer settings, help texts, --version, commands loaded when called."""

import importlib
import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from mxnet_operator.cli.errors import Exit, leave
from mxnet_operator.cli.output.terminal import drop_output, write_line

_ELSEWHERE: Final = {
    **dict.fromkeys(("ps", "ls", "jobs", "list"), "get"),
    **dict.fromkeys(("submit", "create", "apply", "train", "launch", "exec"), "run"),
    "rm": "delete",
    **dict.fromkeys(("cancel", "kill"), "stop"),
    **dict.fromkeys(("status", "show", "inspect"), "describe"),
    **dict.fromkeys(("log", "tail"), "logs"),
}
"""Commands that other command lines (docker, ray, sky, kubectl) have, and ours."""
_LINE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")


def _plain_flags(params: Any) -> Any:
    """Take the type from flags: Typer would show <bool>, as if they took a value."""
    for each in params:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return params


class _Command(TyperCommand):
    """Typer command whose help is wrapped at the terminal's width, and not where its docstring's lines end."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:  # noqa: A002 - click's name
        super().__init__(*args, help=help and _LINE_BREAK.sub(" ", inspect.cleandoc(help)), **settings)

    def get_params(self, ctx: Any) -> Any:
        return _plain_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; end it quietly when nobody reads its output any more, as in `mxjob get | head -1`."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(Exit.CLOSED_PIPE) from None


class _Unloaded(_Command):
    """Command of which only the line in a list of commands is there; its callback imports the rest."""


class _Group(TyperGroup):
    """Typer group that knows the words which other command lines have for ours."""

    def get_params(self, ctx: Any) -> Any:
        return _plain_flags(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of a word, imported; add ours to the error for a word of another command line."""
        try:
            name, command, rest = super().resolve_command(ctx, args)
            return name, _loaded(name, command), rest
        except Exception as error:
            meant = _ELSEWHERE.get(args[0])
            if meant in self.commands and hasattr(error, "message"):
                error.message = f"No such command '{args[0]}'. Did you mean '{meant}'?"
            raise


class App(typer.Typer):
    """Command line, or a group of commands within one; takes the settings of `typer.Typer`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            no_args_is_help=True,
            rich_markup_mode="rich",
            pretty_exceptions_enable=False,
            cls=_Group,
            context_settings={"help_option_names": ["-h", "--help"]},
            **settings,
        )

    def command(self, *args: Any, **settings: Any) -> Callable[[Any], Any]:
        return super().command(*args, **{"cls": _Command, **settings})

    def with_version(self, program: str) -> None:
        """Add the option `--version`, which prints the program's name and version."""

        def show(asked: bool) -> None:
            if asked:
                write_line(f"{program} {_version()}")
                leave(Exit.OK)

        @self.callback()
        def options(
            version: Annotated[
                bool, typer.Option("--version", callback=show, is_eager=True, help="Show the version and exit.")
            ] = False,
        ) -> None: ...

    def lazy(self, name: str, summary: str) -> None:
        """Register a command, or a group of commands, whose module in `cli/verbs` is imported when it is called.

        `summary` is its line in the list of commands.
        """

        def load() -> ModuleType:
            return importlib.import_module(f"mxnet_operator.cli.verbs.{name}")

        self.command(name, help=summary, cls=_Unloaded)(load)


def whole(app: typer.Typer) -> Any:
    """Return a command line with all its commands imported."""
    group = typer.main.get_command(app)
    group.commands = {name: _loaded(name, each) for name, each in group.commands.items()}  # type: ignore[attr-defined]
    return group


def _loaded(name: str | None, command: Any) -> Any:
    if not isinstance(command, _Unloaded):
        return command
    module: Any = command.callback and command.callback()
    if hasattr(module, "app"):
        module.app.info.name = name
        return typer.main.get_group(module.app)
    alone = App(add_completion=False)
    alone.command(name, epilog=module.EXAMPLES)(getattr(module, name or ""))
    return typer.main.get_command(alone)


def _version() -> str:
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
