"""Nothing that came from outside steers the terminal of whoever runs a command, whichever command it is."""

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml
from builders import make_mxjob
from controller_fixtures import submitted
from hostile_api import JUNK, UNPRINTABLE, HostileApi, hostile_job, steering
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mxnet_operator.api.printable import printable, printable_cell, printable_lines
from mxnet_operator.cli import mxjob, mxnet_operator
from mxnet_operator.cli.app import whole
from mxnet_operator.cli.daemons.local_cluster import PrintableFormatter
from mxnet_operator.cli.errors import run_app
from mxnet_operator.controller.log_format import JsonFormatter, TextFormatter


class Screen(io.TextIOWrapper):
    """A stream that takes itself for a terminal, or for a pipe."""

    def __init__(self, *, is_terminal: bool = True) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def shown(self) -> bytes:
        self.flush()
        return self.buffer.getvalue()  # type: ignore[attr-defined, no-any-return]


class Ran(NamedTuple):
    """What a command wrote, and its exit code."""

    out: bytes
    err: bytes
    code: Any

    @property
    def all(self) -> str:
        return (self.out + self.err).decode()


class Terminal:
    """Runs our programs in this process, on a terminal, against a hostile API server."""

    def __init__(self, api: HostileApi, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.api = api
        self.folder = folder
        self._patch = monkeypatch
        for name, value in {
            "KUBECONFIG": str(kubeconfig),
            "MXJOB_HOME": str(folder / f"home{JUNK.replace(chr(0), '')}"[:80]),
            "TERM": "xterm-256color",
            "COLUMNS": "400",
            "LINES": "60",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    def run(self, *words: str, app: Any = mxjob.app, to_pipe: bool = False) -> Ran:
        out, err = Screen(is_terminal=not to_pipe), Screen()
        with self._patch.context() as patch:
            patch.setattr(sys, "argv", ["mxjob", *words])
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as left:
                run_app(app, "mxjob")
            return Ran(out.shown(), err.shown(), left.value.code)

    def file(self, content: str | bytes, name: str = "job.yaml") -> str:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HostileApi, Path]]:
    api = HostileApi(tmp_path_factory.mktemp("api"))
    with api.serving() as kubeconfig:
        yield api, kubeconfig


@pytest.fixture
def terminal(served: tuple[HostileApi, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Terminal:
    api, kubeconfig = served
    HostileApi.__init__(api, kubeconfig.parent)
    return Terminal(api, kubeconfig, monkeypatch, tmp_path)


GOOD = submitted(make_mxjob("digits").worker(image="i"))
QUOTED = json.dumps(JUNK)
"""In YAML, too, with escapes that the reader turns into the characters."""
BAD = json.dumps({**GOOD, "spec": {JUNK: JUNK, **GOOD["spec"], "jobMode": JUNK}})
ARGUMENT = JUNK.replace("\0", "")


def calls(t: Terminal) -> dict[tuple[str, ...], list[list[str]]]:
    """What each command is tried with: arguments of which at least one makes it show a text from outside."""
    good, bad = t.file(json.dumps(GOOD), "good.yaml"), t.file(BAD, "bad.yaml")
    other = t.file(f"kind: {QUOTED}\na: 1\n---\nkind: {QUOTED}\nb: 2", "other.yaml")
    broken = t.file('a: "«\\q»"', f"broken{ARGUMENT.replace('/', '')}"[:120])
    return {
        ("run",): [
            ["-f", good],
            ["-f", good, "--no-logs"],
            ["-f", bad],
            ["-f", broken],
            ["-f", good, "--replica", ARGUMENT],
        ],
        ("init",): [[broken], [good], [ARGUMENT]],
        ("logs",): [["digits"], ["-f", "digits"], ["digits", "--replica", "all"], ["digits", "--replica", ARGUMENT]],
        ("get",): [
            [],
            ["-o", "wide"],
            ["-A"],
            ["digits", "-o", "json"],
            ["digits", "-o", "yaml"],
            [ARGUMENT],
            ["-o", ARGUMENT],
        ],
        ("describe",): [["digits"], [ARGUMENT]],
        ("dashboard",): [["-n", ARGUMENT]],
        ("cp",): [[f"digits:{ARGUMENT}", "."], [ARGUMENT, "."]],
        ("wait",): [["digits"], ["digits", "--timeout", ARGUMENT]],
        ("stop",): [["digits"], [ARGUMENT]],
        ("rerun",): [["digits", "--detach"], [ARGUMENT]],
        ("delete",): [["digits"], [ARGUMENT]],
        ("validate",): [["-f", bad], ["-f", other], ["-f", broken]],
        ("convert",): [["-f", bad], ["-f", other], ["-f", broken]],
        ("local", "up"): [["--resource", ARGUMENT]],
        ("local", "down"): [[ARGUMENT]],
        ("local", "status"): [[ARGUMENT]],
        ("local", "prune"): [[], [ARGUMENT]],
        ("local", "kubeconfig"): [[ARGUMENT]],
        ("local", "image", "add"): [[ARGUMENT, ARGUMENT], ["mine:1", ARGUMENT]],
        ("local", "image", "list"): [[ARGUMENT]],
        ("local", "image", "remove"): [[ARGUMENT]],
        ("local", "image", "show"): [[ARGUMENT]],
        ("local", "image", "build"): [[ARGUMENT]],
    }


def commands(app: typer.Typer) -> Iterator[tuple[str, ...]]:
    """Every command of a program."""

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if not hasattr(command, "commands"):
            yield path
        for name, each in getattr(command, "commands", {}).items():
            yield from below(each, (*path, name))

    yield from below(whole(app), ())


@pytest.mark.parametrize("command", list(commands(mxjob.app)), ids=" ".join)
def test_no_command_lets_text_from_outside_steer_the_terminal(terminal: Terminal, command: tuple[str, ...]) -> None:
    """A new command has to be given its calls here."""
    shown = ""
    for arguments in calls(terminal)[command]:
        ran = terminal.run(*command, *arguments)
        assert steering(ran.all) == [], repr(ran.all)
        assert "Traceback" not in ran.all
        shown += ran.all
    assert "«" in shown, f"nothing from outside was shown: {shown}"


@pytest.mark.parametrize(
    "command",
    [c for c in commands(mxjob.app) if c[0] in {"run", "logs", "get", "describe", "wait", "stop", "rerun", "delete"}],
    ids=" ".join,
)
def test_what_the_server_says_in_a_refusal_is_text(terminal: Terminal, command: tuple[str, ...]) -> None:
    terminal.api.refuses = True
    ran = terminal.run(*command, *calls(terminal)[command][0])
    assert (ran.code, "forbidden: «^[]52;c;" in ran.all, steering(ran.all)) == (3, True, [])


@pytest.mark.parametrize("arguments", [["crd", ARGUMENT], ["run", "--kubeconfig", ARGUMENT, "--no-leader-elect"]])
def test_the_controllers_program_shows_text_as_text(terminal: Terminal, arguments: list[str]) -> None:
    assert {command[0] for command in commands(mxnet_operator.app)} == {"crd", "run"}
    ran = terminal.run(*arguments, app=mxnet_operator.app)
    assert ("«" in ran.all, steering(ran.all)) == (True, [])


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter(), PrintableFormatter("%(message)s")])
def test_what_is_logged_is_text(formatter: logging.Formatter) -> None:
    record = logging.LogRecord("l", logging.INFO, "f.py", 1, "the server said: %s", (JUNK,), None)
    assert steering(formatter.format(record)) == []


def test_markup_and_emoji_of_others_are_shown_as_they_are_written(terminal: Terminal) -> None:
    for arguments in (
        ["describe", "digits"],
        ["wait", "digits"],
        ["get", "-o", "wide"],
        ["run", "-f", terminal.file(json.dumps(GOOD))],
    ):
        shown = re.sub(r"\x1b\[[\d;]*m", "", terminal.run(*arguments).all)
        assert "[red]markup[/] [link=http://e]l[/] :bomb:" in shown


any_log = st.lists(
    st.binary(max_size=30) | st.sampled_from([b"\n", b"\r", b"\r\n", JUNK.encode(), b"\x9b2J", b"\xff"])
).map(b"".join)


@pytest.mark.exhaustive
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=any_log, follow=st.booleans())
@example(log=b"no newline at the end", follow=True)
@example(log=b"\xf0\x9f\x92" * 50_000, follow=True)
def test_any_bytes_in_a_log_are_text_on_a_terminal_and_the_same_bytes_in_a_pipe(
    terminal: Terminal, log: bytes, follow: bool
) -> None:
    terminal.api.log = log
    words = ["logs", "digits", *(["-f"] if follow else [])]
    assert terminal.run(*words, to_pipe=True).out == log
    shown = terminal.run(*words).out.decode()
    assert UNPRINTABLE.findall(shown) == []
    assert terminal.run(*words, "--raw").out == log


def test_a_progress_bar_is_a_line_for_each_of_its_states(terminal: Terminal) -> None:
    terminal.api.log = b"\r  0%|     | 0/2\r 50%|##   | 1/2\r100%|#####| 2/2\nINFO done\r\n"
    shown = terminal.run("logs", "digits").out.decode().splitlines()
    assert shown == ["  0%|     | 0/2", " 50%|##   | 1/2", "100%|#####| 2/2", "INFO done"]


def test_a_job_run_in_a_pipe_passes_its_log_on_byte_for_byte(terminal: Terminal) -> None:
    terminal.api.log = b"\x1b[31mred\x1b[0m\r\n\xff\xfe no newline"
    ran = terminal.run("run", "-f", terminal.file(json.dumps(GOOD)), to_pipe=True)
    assert ran.out == terminal.api.log
    assert steering(ran.err.decode()) == []


def test_json_and_yaml_in_a_pipe_hold_what_the_server_has(terminal: Terminal) -> None:
    terminal.api.job = hostile_job(junk="\x1b[2J \x9b \u202e é")
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        ran = terminal.run("get", "digits", "-o", output, to_pipe=True)
        assert read(ran.out.decode()) == terminal.api.job


@given(st.text())
def test_printable_text_has_nothing_to_obey_and_is_else_the_same(text: str) -> None:
    shown = printable(text)
    assert UNPRINTABLE.findall(shown) == []
    assert printable(shown) == shown
    assert (shown == text) == (not UNPRINTABLE.search(text))
    assert "\n" not in printable_cell(text)
    assert all("\n" not in line for line in printable_lines(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "^[[2J"),
        ("\x07\x00\x7f", "^G^@^?"),
        ("\u202eevil", "<U+202E>evil"),
        ("\x9b", "<U+009B>"),
        ("\udcff", r"\xff"),
        ("\ud800", "<U+D800>"),
        ("naïve\t日本 😀\n", "naïve\t日本 😀\n"),
    ],
)
def test_a_control_character_is_shown_by_its_name(text: str, shown: str) -> None:
    assert printable(text) == shown
