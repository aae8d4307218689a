"""Prints what CHANGELOG.md says of the version of a tag, for the page of the release: `release_notes.py v0.1.0`.

Refuses a tag that is not the version of pyproject.toml, or of which the changelog says nothing. Of a development
version it says what is unreleased.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_SECTION: Final = re.compile(
    r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)


def sections(changelog: str) -> dict[str, tuple[str, str]]:
    """The date and text of each version of a changelog, the newest first; Unreleased has no date."""
    return {found["version"]: (found["date"] or "", found["text"].strip()) for found in _SECTION.finditer(changelog)}


def project_version() -> str:
    """The version of the project."""
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return version


def notes(tag: str, changelog: str, version: str) -> str:
    """The text of a tag's version.

    Raises:
        ValueError: the tag is not `v` and the version, or the changelog has no dated text for it.
    """
    if tag != f"v{version}":
        raise ValueError(
            f"tag {tag} is not v{version}, the version in pyproject.toml: change it there, or tag v{version}"
        )
    if ".dev" in version:
        return sections(changelog)["Unreleased"][1]
    date, text = sections(changelog).get(version, ("", ""))
    if not date or not text:
        raise ValueError(
            f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD' with text: add it before the release"
        )
    return text


def main(tag: str) -> int:
    """Print the notes; the exit code is 1 where there are none."""
    try:
        text = notes(tag, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), project_version())
    except ValueError as e:
        sys.stderr.write(f"{e}\n")
        return 1
    sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
