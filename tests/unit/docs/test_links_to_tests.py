"""Each row of a document's page in examples/seeds links to the test that shows it; user pages link no tests."""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted((ROOT / "examples" / "seeds").glob("*/README.md"))
LINK = re.compile(r"\]\((?P<file>(?:\.\./)+tests/[^)#]+)#(?P<name>[^)]+)\)")


OTHERWISE = "decisions/api.md#differences-from-the-five-documents)"
"""What a row of a document's page may link to in place of a test: the page that quotes what is left out, and why."""


def rows(page: Path) -> list[str]:
    lines = page.read_text().splitlines()
    return [line for before, line in pairwise(lines) if line.startswith("| ") and before.startswith(("|--", "| "))]


@cache
def functions_in(file: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)}


def test_each_row_of_a_document_links_to_the_test_that_shows_it() -> None:
    assert [page.parent.name[:3] for page in DOCUMENTS] == ["000", "001", "002", "003", "004"]
    for page in DOCUMENTS:
        assert len(rows(page)) >= 8
        assert [row for row in rows(page) if not LINK.search(row) and OTHERWISE not in row] == [], page
        links = LINK.findall(page.read_text())
        assert [each for each in links if each[1] not in functions_in((page.parent / each[0]).resolve())] == [], page
