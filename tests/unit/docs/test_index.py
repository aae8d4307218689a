"""docs/README.md and the lists of its folders name every page once."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
INDEXES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("README.md"))
GROUPS = re.findall(r"^  - ([^:\n]+):$", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2], re.MULTILINE)
"""Groups of the site's navigation; the first is three cards on the page."""
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


def test_the_index_has_the_groups_of_the_site():
    assert re.findall(r"^## (.+)$", (DOCS / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE) == GROUPS[1:]
    assert len(GROUPS) > 5
