"""What make generate writes of the documentation is up to date, and leaves nothing out."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = {
    "mxjob_reference.py": "mxjob-reference.md",
    "cli_reference.py": "cli-reference.md",
    "description_reference.py": "description-reference.md",
}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("tool", "written"), PAGES.items())
def test_the_reference_is_up_to_date(tool, written):
    made = runpy.run_path(str(ROOT / "tools" / tool))["reference"]()
    assert page(written) == made, "run: make generate"


def test_make_generate_runs_every_tool_that_writes_something():
    recipe = (ROOT / "Makefile").read_text().partition("\ngenerate:")[2].partition("\n.PHONY")[0]
    written = re.compile(r"^TARGET\b", re.MULTILINE)
    tools = {path.name for path in (ROOT / "tools").glob("*.py") if written.search(path.read_text(encoding="utf-8"))}
    assert tools > set(PAGES)
    assert set(re.findall(r"tools/(\w+\.py)", recipe)) == tools
