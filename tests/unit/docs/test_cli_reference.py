"""docs/cli-reference.md says each option once: in the section of its command, or by naming the command that has it."""

import re
from pathlib import Path

from mxnet_operator.cli import mxjob
from mxnet_operator.cli.app import whole

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cli-reference.md"
ELSEWHERE = {"--kubeconfig", "--context", "--namespace", "--help", "--install-completion", "--show-completion"}
"""Options of all commands that talk to a cluster, which stand once above them, and those of every program."""


def options(command, name):
    """The options of a command and of those below it, by command."""
    below = getattr(command, "commands", {})
    for each, one in below.items():
        yield from options(one, f"{name} {each}")
    shown = [each for each in command.params if each.opts[0].startswith("-") and not each.hidden]
    yield name, {max(each.opts, key=len) for each in shown}


def test_every_option_is_in_the_section_of_its_command_or_among_those_of_all() -> None:
    of_commands = dict(options(whole(mxjob.app), "mxjob"))
    sections = dict(re.findall(r"^#+ (mxjob.*?)\n(.*?)(?=^#)", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL))
    assert sections.keys() == of_commands.keys()
    rows = {
        name: " ".join(re.findall(r"^\| `.*?` \||^As for .*", of, flags=re.MULTILINE)) for name, of in sections.items()
    }
    missing = {
        name: found - set(re.findall(r"--?[a-z-]+", rows[name])) - ELSEWHERE for name, found in of_commands.items()
    }
    assert {name: found for name, found in missing.items() if found} == {}
