"""docs/failures.md claims nothing without a test: each row of its tables links to one, and each link finds one.

The links of docs/argo.md find theirs, too.
"""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "failures.md"
LINK = re.compile(r"\]\((?P<file>\.\./tests/[^)#]+)#(?P<name>[^)]+)\)")
LINES = PAGE.read_text().splitlines()
ROWS = [line for before, line in pairwise(LINES) if line.startswith("| ") and before.startswith(("|--", "| "))]
PAGES = (PAGE, PAGE.with_name("argo.md"))
LINKS = sorted({(link["file"], link["name"]) for page in PAGES for link in LINK.finditer(page.read_text())})


@cache
def functions_in(file: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_a_row_links_to_the_test_that_shows_it(row):
    assert LINK.search(row)


@pytest.mark.parametrize(("file", "name"), LINKS, ids=lambda part: part.rpartition("/")[2])
def test_a_link_leads_to_a_test(file, name):
    assert name.startswith("test_")
    assert name in functions_in((PAGE.parent / file).resolve())


def test_there_are_rows_and_links():
    assert len(ROWS) > 20
    assert len(LINKS) > 10
