"""Commands in blocks of `shell` and `console`, and in indented ones: run by a test, or a comment says why not.

A reader copies them like those of fenced blocks (test_fenced_blocks.py). All are read here: this project's programs
take them, `make` has the target, and what they name of this repository is there.
"""

import re
import shlex
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from mxnet_operator.cli import mxjob, mxnet_operator
from mxnet_operator.cli.app import whole

ROOT = Path(__file__).resolve().parents[3]
GENERATED = ROOT / "docs" / "cli-reference.md"
"""Its commands are what the program says of itself."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page != GENERATED),
    *sorted((ROOT / "examples").rglob("README.md")),
]
APPS = {"mxjob": mxjob.app, "mxnet-operator": mxnet_operator.app}
PROGRAMS = {
    *APPS,
    *("airflow", "argo", "curl", "docker", "export", "git", "helm", "kubectl", "make", "openssl", "pip", "pytest"),
    *("python", "tox", "uv"),
}
FOLDERS = {each.name for each in ROOT.iterdir() if each.is_dir() and not each.name.startswith(".")}
FENCED = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
HERE_DOCUMENT = re.compile(
    r"<<(?P<quote>'?)(?P<end>\w+)(?P=quote)(?P<rest>[^\n]*)\n.*?^(?P=end)$", re.MULTILINE | re.DOTALL
)
REASON = re.compile(
    r"^<!-- Not run by a test: the (?:indented )?commands of this page,(?:(?!-->).)+\. -->$", re.MULTILINE
)
COMMANDS = {"shell", "console"}
"""Languages of blocks in which commands may be."""
RUN_BY = {
    ("docs/argo.md", "argo submit -n ml --from workflowtemplate/mxjob-manifest"): "argo/test_argo_commands.py",
    ("docs/argo.md", "kubectl apply -n ml -k argo/templates"): "argo/test_argo_commands.py",
    (
        "examples/seeds/README.md",
        "mxjob local image add kubeflow/dog-food-for-mxnet:1.0",
    ): "local/test_seed_documents.py",
}
"""By page and beginning of a block's first command the file of tests that takes the block from the page and runs it."""


class Block(NamedTuple):
    """A block of a page that isn't fenced as a language of its own."""

    page: str
    line: int
    text: str

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command; none in a block that is what a program prints."""
        lines = HERE_DOCUMENT.sub(r"\g<rest>", self.text).replace("\\\n", " ").splitlines()
        session = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        found = [part for line in session or lines for part in simple_commands(line)]
        return [words for words in found if session or program(words) in PROGRAMS]


def program(words: list[str]) -> str:
    """The program's name, without its folder, `nice` and what is set for it alone."""
    given = [word for word in words if word != "nice" and not re.match(r"[A-Z_]+=", word)]
    return Path(given[0]).name if given else ""


def simple_commands(line: str) -> list[list[str]]:
    """The commands of a line of a shell, without what is redirected."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # an apostrophe: a sentence
        return []
    commands: list[list[str]] = [[]]
    redirected = False
    for word in words:
        if set(word) <= set("|&;"):
            commands.append([])
            redirected = False
        elif set(word) <= set("<>"):
            redirected = True
        elif not redirected:
            commands[-1].append(word)
    return [words for words in commands if words]


def blocks_of(path: Path) -> list[Block]:
    name = path.relative_to(ROOT).as_posix()
    page = path.read_text(encoding="utf-8")
    found = [
        Block(name, page.count("\n", 0, each.start()) + 1, dedent(each["text"]))
        for each in FENCED.finditer(page)
        if each["language"] in COMMANDS
    ]
    prose = FENCED.sub(lambda fenced: "\n" * fenced[0].count("\n"), page)
    for each in re.finditer(r"(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n)+", prose):
        text = "".join(line[4:] for line in each[0].splitlines(keepends=True))
        found.append(Block(name, prose.count("\n", 0, each.start()) + 1, text))
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page) if block.commands]


def runs_it(block: Block) -> str | None:
    return next(
        (test for (page, begin), test in RUN_BY.items() if page == block.page and block.text.startswith(begin)), None
    )


def test_a_block_of_commands_is_run_by_a_test_or_its_page_says_why_not() -> None:
    for page in sorted({block.page for block in BLOCKS}):
        silent = [block.id for block in BLOCKS if block.page == page and runs_it(block) is None]
        reasons = REASON.findall((ROOT / page).read_text(encoding="utf-8"))
        assert len(reasons) == bool(silent), f"{page}: not run: {silent}"


@pytest.mark.parametrize(("block", "test"), [pytest.param(*each, id=each[0][1]) for each in RUN_BY.items()])
def test_the_test_of_a_block_exists_and_so_does_the_block(block: tuple[str, str], test: str) -> None:
    assert (ROOT / "tests" / test).exists()
    assert [each for each in BLOCKS if each.page == block[0] and each.text.startswith(block[1])]


@cache
def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS}))
def test_each_command_is_one_that_can_be_typed(page: str) -> None:
    commands = [(block.id, words) for block in BLOCKS if block.page == page for words in block.commands]
    for place, words in commands:
        if program(words) in APPS:
            accepted(words[[Path(word).name for word in words].index(program(words)) :])
        if program(words) == "make":
            made = {word for word in words[1:] if "=" not in word and not word.startswith("-")}
            assert made <= targets(), place
        for word in words:
            path = word.removeprefix("./").partition("=")[2] or word
            if path.partition("/")[0] in FOLDERS and "/" in path:
                assert (ROOT / path).exists(), f"{place}: {path} is not in the repository"


def accepted(words: list[str]) -> None:
    """Have the program read a command, and not carry it out."""
    command: Any = whole(APPS[words[0]])
    name, *arguments = words
    while getattr(command, "commands", None):
        name, *arguments = arguments
        command = command.commands[name]
    command.make_context(name, arguments).close()
