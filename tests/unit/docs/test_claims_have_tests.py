"""The user pages claim nothing without a test: tests/claims.yaml names one for each claim, and each test exists.

The five documents' pages of examples/seeds link to theirs themselves.
"""

import ast
import re
import runpy
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOL = runpy.run_path(str(ROOT / "tools" / "claims.py"))
PROOFS = TOOL["proofs"]()
DOCUMENTS = sorted((ROOT / "examples" / "seeds").glob("*/README.md"))
LINK = re.compile(r"\]\((?P<file>(?:\.\./)+tests/[^)#]+)#(?P<name>[^)]+)\)")
FOR_MAINTAINERS = {"claims.md", "tests.md"}
OTHERWISE = "decisions/api.md#differences-from-the-five-documents)"
"""What a row of a document's page may link to in place of a test: the page that quotes what is left out, and why."""


def rows(page: Path) -> list[str]:
    lines = page.read_text().splitlines()
    return [line for before, line in pairwise(lines) if line.startswith("| ") and before.startswith(("|--", "| "))]


@cache
def functions_in(file: Path) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)}


def exists(path: str) -> bool:
    file, _, name = path.partition("#")
    return (ROOT / file).is_file() and (not name or name in functions_in(ROOT / file))


@pytest.mark.parametrize("page", PROOFS)
def test_the_claims_of_a_page_are_those_that_the_file_has(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    claimed, prose = TOOL["claims_of"](page, text), TOOL["prose_of"](text)
    proved = [(heading, claim) for heading, claims in PROOFS[page].items() for claim in claims]
    assert [claim for claim in claimed if claim not in proved] == []
    further = [claim for claim in proved if claim not in claimed]
    assert [each for each in further if each[1][-1] not in ".:" or each[1] not in prose.get(each[0], "")] == []


def test_each_claim_has_a_test_that_exists() -> None:
    for page, headings in PROOFS.items():
        for heading, claims in headings.items():
            for claim, paths in claims.items():
                where = f"{page}, {heading}: {claim}"
                assert [path for path in paths if path.startswith("tests/")], where
                assert [path for path in paths if not exists(path)] == [], where


def test_each_rule_names_the_file_that_decides() -> None:
    rules = [(claim, paths) for claims in PROOFS["semantics.md"].values() for claim, paths in claims.items()]
    assert len(rules) > 40
    assert [claim for claim, paths in rules if not any(path.startswith("operator/") for path in paths)] == []


def test_the_pages_of_what_happens_are_among_them() -> None:
    assert set(PROOFS) == {"argo-events.md", "argo.md", "failures.md", "semantics.md"}


def test_each_row_of_a_document_links_to_the_test_that_shows_it() -> None:
    assert [page.parent.name[:3] for page in DOCUMENTS] == ["000", "001", "002", "003", "004"]
    for page in DOCUMENTS:
        assert len(rows(page)) >= 8
        assert [row for row in rows(page) if not LINK.search(row) and OTHERWISE not in row] == [], page
        links = LINK.findall(page.read_text())
        assert [each for each in links if each[1] not in functions_in((page.parent / each[0]).resolve())] == [], page


def test_user_pages_link_no_tests() -> None:
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name not in FOR_MAINTAINERS]
    assert len(pages) > 30
    assert [page.name for page in pages if "](../tests/" in page.read_text(encoding="utf-8")] == []
