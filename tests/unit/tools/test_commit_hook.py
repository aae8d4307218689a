"""The commit-msg hook: what `make install` puts where git looks for it, and which messages it lets pass."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
GOOD, BAD = "plan: reject Workers that exit early", "Fixed stuff."


@pytest.fixture(scope="module")
def mistakes():
    return runpy.run_path(str(ROOT / "tools" / "commit_message.py"))["mistakes"]


def test_which_messages_pass_and_why_others_do_not(mistakes):
    for message in (
        GOOD,
        "cli, provider: take unknown fields on request\n\nWhy, in the body, however long a line is: " + "x" * 90,
        "plan: " + "ä" * 30 + " " + "ö" * 35,
        "kube: HTTP answers are read once",
        "tests: `make lint` runs once\n",
        "\n\nplan: add a rule\n# Please enter the commit message\n#\n# On branch main\n",
        f"plan: add a rule\n# {'-' * 24} >8 {'-' * 24}\ndiff --git a/x b/x\nFixed stuff.\n",
        "Merge branch 'main' into x",
        'Revert "plan: add a rule"',
        "fixup! plan: add a rule",
        "",
    ):
        assert mistakes(message) == [], message
    for message, says in (
        (BAD, "not 'area: verb object'"),
        ("plan:add a rule", "not 'area: verb object'"),
        ("Plan: add a rule", "not 'area: verb object'"),
        ("plan: Add a rule", "begins in lower case"),
        ("plan: add", "a verb and an object"),
        ("plan: add a rule.", "without a full stop"),
        ("plan: add " + "x" * 63, "has 73 characters"),
        ("plan: add a rule\nand another", "after the subject is empty"),
    ):
        (mistake,) = mistakes(message)
        assert says in mistake, message


class Checkout:
    """A clone in a folder of its own, with what the hook needs of the project and a user's own git configuration."""

    def __init__(self, path: Path, home: Path) -> None:
        self.path = path
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") and name != "CI"}
        identity = {
            f"GIT_{who}_{what}": f"{who}@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        self.environment = {**kept, **identity, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}

    def git(self, *arguments, check=True):
        return self.run("git", *arguments, check=check)

    def run(self, *command, check=True):
        done = subprocess.run(command, cwd=self.path, env=self.environment, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done

    def install(self):
        return self.run("tools/install_hooks.sh").stdout

    def takes(self, message):
        """Whether a commit with this message is made."""
        command = ("git", "commit", "--allow-empty", "-q", "-m", message)
        return self.run(*command, check=False).returncode == 0

    def with_python(self):
        """With something that stands for the .venv of `make install`."""
        (self.path / ".venv" / "bin").mkdir(parents=True)
        (self.path / ".venv" / "bin" / "python").symlink_to(sys.executable)
        return self


@pytest.fixture
def clone(tmp_path):
    checkout = Checkout(tmp_path / "clone", tmp_path)
    shutil.copytree(ROOT / "tools", checkout.path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    checkout.git("init", "-q", "-b", "main")
    checkout.git("add", "tools")
    checkout.git("commit", "-q", "-m", "Begun before there was a hook")
    return checkout.with_python()


def test_in_a_clone_a_bad_message_is_rejected_and_a_good_one_taken(clone):
    assert clone.takes(BAD)
    assert clone.install() == ""
    assert not clone.takes(BAD)
    assert clone.takes(GOOD)
    assert clone.install() == ""
    assert not clone.takes(BAD)


def test_pre_commit_checks_what_make_lint_checks():
    recipe = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n.PHONY")[0]
    linted = {
        re.sub(r" --(?:quiet|no-error-summary)\b", "", command).strip()
        for command in re.findall(r"\$\(BIN\)/([^>|\n]+)", recipe)
    }
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    entries = {hook["entry"].partition(".venv/bin/")[2] for hook in hooks if "stages" not in hook}
    assert len(linted) == 4
    assert entries == linted
    (message,) = [hook["entry"] for hook in hooks if hook.get("stages") == ["commit-msg"]]
    assert message == ".venv/bin/python tools/commit_message.py"
