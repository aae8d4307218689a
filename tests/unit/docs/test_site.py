"""The site of docs/ is built without a broken link or anchor, with every page in its navigation."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.exhaustive
def test_make_docs_builds_the_site_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        ["make", "docs", f"SITE={tmp_path / 'site'}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert (tmp_path / "site" / "search" / "search_index.json").exists()
