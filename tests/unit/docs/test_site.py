"""The site of docs/ has no broken link or anchor, has every page in its navigation, and needs no network."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from chromium import browser_page
from playwright.sync_api import Request

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(not (shutil.which("npm") and shutil.which("node")), reason="needs npm and node"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(["make", "docs", f"SITE={folder}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_make_docs_builds_the_site_with_its_search_without_a_warning(site: Path) -> None:
    assert (site / "search" / "search_index.json").exists()


def test_a_pipe_in_the_code_of_a_cell_has_no_backslash(site: Path) -> None:
    cells = [cell for page in site.glob("*/index.html") for cell in re.findall(r"<td.*?</td>", page.read_text())]
    assert [cell for cell in cells if "mxjob get | head -1" in cell]
    assert [cell for cell in cells if "\\|" in cell] == []


@pytest.mark.parametrize("name", ["concepts", "architecture"])
def test_a_page_draws_its_diagrams_without_the_network(site: Path, name: str) -> None:
    outside: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith(("file:", "blob:", "data:")):
            outside.append(request.url)

    page_file = site / name / "index.html"
    diagrams = page_file.read_text(encoding="utf-8").count('<pre class="mermaid">')
    with browser_page() as page:
        page.on("request", note)
        page.goto(page_file.as_uri())
        page.wait_for_function("many => document.querySelectorAll('div.mermaid').length === many", arg=diagrams)
    assert diagrams
    assert outside == []
