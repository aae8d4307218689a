"""docs/failures.md and the five documents' pages claim nothing without a test: each row links to one that exists.

So do those of docs/argo.md that tell what happens when. The rules of docs/semantics.md also name the file that decides.
"""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[3]
FAILURES = ROOT / "docs" / "failures.md"
DOCUMENTS = sorted((ROOT / "examples" / "seeds").glob("*/README.md"))
ARGO = ROOT / "docs" / "argo.md"
SEMANTICS = ROOT / "docs" / "semantics.md"
PAGES = [FAILURES, *DOCUMENTS]
LINK = re.compile(r"\]\((?P<file>(?:\.\./)+tests/[^)#]+)#(?P<name>[^)]+)\)")
OTHERWISE = "decisions/api.md#what-the-five-documents-promise-otherwise-and-what-stands-in-its-place)"
"""What a row of a document's page may link to in place of a test: the page that quotes what is left out, and why."""


def rows(page: Path) -> list[str]:
    lines = page.read_text().splitlines()
    return [line for before, line in pairwise(lines) if line.startswith("| ") and before.startswith(("|--", "| "))]


def events(page: Path) -> list[str]:
    """The rows of the tables that begin with an event."""
    tables = page.read_text().split("\n| event |")[1:]
    return [line for table in tables for line in table.split("\n\n")[0].splitlines()[2:]]


def links(page: Path) -> list[tuple[str, str]]:
    return sorted({(link["file"], link["name"]) for link in LINK.finditer(page.read_text())})


def name(page: Path) -> str:
    return page.parent.name if page in DOCUMENTS else page.stem


@cache
def functions_in(file: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)}


def test_each_row_links_to_the_test_that_shows_it():
    without = {
        (name(page), row.split("|")[1].strip())
        for page in PAGES
        for row in rows(page)
        if not (LINK.search(row) or (page in DOCUMENTS and OTHERWISE in row))
    }
    assert without == set()


def test_what_happens_in_argo_links_to_the_test_that_shows_it():
    assert [row.split("|")[1].strip() for row in events(ARGO) if not LINK.search(row)] == []


def rules() -> list[str]:
    """The rules of docs/semantics.md: each item of its lists, and each of its sections."""
    _, *sections = SEMANTICS.read_text().split("\n## ")
    lists = [block for section in sections for block in section.split("\n\n") if block.startswith("- ")]
    return sections + [item for block in lists for item in re.split(r"^- ", block, flags=re.MULTILINE) if item]


def test_each_rule_names_the_file_that_decides_and_a_test():
    needed = ("](../operator/mxnet_operator/", "](../tests/")
    assert [rule.strip("* \n")[:60] for rule in rules() if not all(each in rule for each in needed)] == []


def test_each_link_leads_to_a_test():
    pages = (*PAGES, ARGO, SEMANTICS)
    broken = [
        (name(page), file, test)
        for page in pages
        for file, test in links(page)
        if not (test.startswith("test_") and test in functions_in((page.parent / file).resolve()))
    ]
    assert broken == []


def test_there_are_rows_and_links():
    assert [name(page)[:3] for page in DOCUMENTS] == ["000", "001", "002", "003", "004"]
    assert all(len(rows(page)) >= 8 for page in DOCUMENTS)
    assert len(rows(FAILURES)) > 20
    assert len(events(ARGO)) > 30
    assert len(links(FAILURES)) > 10
    assert len(rules()) > 25
