"""One version everywhere: pyproject.toml, the changelog, the images in manifests and pages, Airflow's metadata."""

import re
import runpy
import subprocess
from pathlib import Path

import pytest
from packaging.version import Version

from mxnet_provider.get_provider_info import get_provider_info

ROOT = Path(__file__).resolve().parents[3]


IMAGE = re.compile(r"(?:\bmxnet-operator:|newTag: )(\d+\.\d+\.\d+(?:\.dev\d+)?)")


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(ROOT / "tools" / "release_notes.py"))


@pytest.fixture(scope="module")
def version(tool):
    return tool["project_version"]()


@pytest.fixture(scope="module")
def changelog():
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_changelog_has_what_is_unreleased_and_then_the_projects_version(tool, changelog, version):
    unreleased, newest, *_ = tool["sections"](changelog).items()
    assert unreleased[0] == "Unreleased"
    assert newest[0] == version or (".dev" in version and Version(newest[0]) < Version(version))
    assert "" not in [date for date, _ in list(tool["sections"](changelog).values())[1:]]


def test_every_image_of_ours_that_is_named_has_the_projects_version(version):
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True).stdout
    texts = [ROOT / line for line in listed.splitlines() if not line.startswith("tests/")]
    found = {
        (path.relative_to(ROOT).as_posix(), named)
        for path in texts
        if path.suffix in {".md", ".py", ".yaml", ""} and path.is_file()
        for named in IMAGE.findall(path.read_text(encoding="utf-8"))
    }
    assert len(found) > 5
    assert {each for each in found if each[1] not in {version, Version(version).base_version}} == set()


def test_no_option_of_airflows_was_added_by_a_version_to_come(version):
    sections = get_provider_info()["config"].values()
    added = [option["version_added"] for section in sections for option in section["options"].values()]
    assert len(added) > 1
    assert [each for each in added if Version(each) > Version(version)] == []


def test_the_notes_of_a_release_are_the_changelogs(tool):
    newest = "## [1.2.0] - 2026-11-22\n\n### Added\n- A thing.\n\n"
    text = f"# Changelog\n\n## [Unreleased]\n\n{newest}## [1.1.0] - 2026-10-01\n\nOld.\n"
    assert tool["notes"]("v1.2.0", text, "1.2.0") == "### Added\n- A thing."


@pytest.mark.parametrize(
    ("tag", "changelog", "says"),
    [
        ("v1.3.0", "## [1.2.0] - 2026-11-22\n\nText.\n", "not v1.2.0"),
        ("1.2.0", "## [1.2.0] - 2026-11-22\n\nText.\n", "not v1.2.0"),
        ("v1.2.0", "## [1.2.0]\n\nText.\n", "no section"),
        ("v1.2.0", "## [1.2.0] - 2026-11-22\n\n## [1.1.0] - 2026-10-01\n", "no section"),
        ("v1.2.0", "## [Unreleased]\n\nText.\n", "no section"),
    ],
)
def test_a_release_that_is_not_prepared_is_rejected(tool, tag, changelog, says):
    with pytest.raises(ValueError, match=says):
        tool["notes"](tag, changelog, "1.2.0")
