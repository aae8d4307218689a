"""docs/README.md and the lists of its folders name every page once; every decision has its number, date and status."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
INDEXES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("README.md"))
GROUPS = ["Tutorials", "How-to guides", "Reference", "Explanation"]
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)\)")


def pages_of(index: Path) -> set[str]:
    """What a folder's list must have: its pages, and the lists of the folders below."""
    beside = {path.name for path in index.parent.glob("*.md")} - {"README.md"}
    return beside | {path.relative_to(index.parent).as_posix() for path in index.parent.glob("*/README.md")}


def missing_or_repeated(index: Path) -> dict[str, int]:
    """The pages that a list does not have exactly once."""
    links = [match["target"] for match in LINK.finditer(index.read_text(encoding="utf-8"))]
    return {page: links.count(page) for page in pages_of(index) if links.count(page) != 1}


@pytest.mark.parametrize("index", INDEXES)
def test_every_page_is_in_its_folders_list_exactly_once(index):
    assert {"README.md", "decisions/README.md", "facts/README.md"} <= set(INDEXES)
    assert len(pages_of(DOCS / index)) > 5
    assert missing_or_repeated(DOCS / index) == {}


def test_a_page_that_is_missing_and_one_that_stands_twice_are_found(tmp_path):
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).touch()
    (tmp_path / "README.md").write_text("[a](a.md) [c](c.md) [again](c.md)")
    assert missing_or_repeated(tmp_path / "README.md") == {"b.md": 0, "c.md": 2}


def test_the_index_has_the_four_kinds_of_pages():
    assert re.findall(r"^## (.+)$", (DOCS / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE) == GROUPS


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(ROOT / "tools" / "decisions_index.py"))


def test_every_decision_is_listed_with_its_date_and_status(tool):
    assert (DOCS / "decisions" / "README.md").read_text(encoding="utf-8") == tool["index"](), "run: make generate"


def test_numbers_of_decisions_are_unique_and_those_of_their_files(tool):
    decisions = tool["decisions"]()
    numbers = [decision.number for decision in decisions]
    assert numbers == sorted(set(numbers))
    assert [decision.file[:4] for decision in decisions] == numbers


def test_no_decision_has_been_removed(tool):
    numbers = [int(decision.number) for decision in tool["decisions"]()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_superseded_decision_names_one_that_exists(tool):
    decisions = tool["decisions"]()
    successors = {each.status.split()[-1] for each in decisions if each.status.startswith("superseded by")}
    assert successors <= {each.number for each in decisions}


@pytest.mark.parametrize(
    "text",
    [
        "# 0001 A choice\n\n**Context.** No date.\n",
        "# 0001 A choice\n\n2026-11-22\n\nNo status.\n",
        "# 0001 A choice\n\n2026-11-22 · superseded\n\nBy which one?\n",
        "# A choice\n\n2026-11-22 · accepted\n\nNo number.\n",
    ],
)
def test_a_decision_without_its_opening_is_found(tool, tmp_path, text):
    path = tmp_path / "0001-a-choice.md"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"0001-a-choice\.md"):
        tool["_read"](path)
