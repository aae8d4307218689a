"""The generated files of the folder `argo`, by their first line: to generate them takes seconds of each collection."""

from pathlib import Path

ARGO = Path(__file__).parents[2] / "argo"
GENERATED = sorted(file for file in ARGO.rglob("*.yaml") if file.read_text().startswith("# Generated"))


def name_of(path: Path) -> str:
    """The path within the folder, as a test's id."""
    return str(path.relative_to(ARGO))
