"""The commit-msg hook: which messages it lets pass."""

import runpy
from pathlib import Path

import pytest

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
