"""`python -m mxnet_argo argo` writes what is generated there: the shipped templates, and the examples as YAML."""

import runpy
import sys
from pathlib import Path

from hera.workflows import ClusterWorkflowTemplate, WorkflowTemplate

from mxnet_argo.catalog import CATALOG

HEADER = "# Generated from {source} by `make generate`. Don't edit.\n"


def files(argo: Path) -> dict[Path, str]:
    """The text of each generated file, by its path in the repository's folder `argo`."""
    templates = argo / "templates"
    kinds = ((templates, WorkflowTemplate), (templates / "cluster", ClusterWorkflowTemplate))
    generated = {
        folder / f"{name}.yaml": HEADER.format(source="mxnet_argo/catalog.py") + str(make(kind).to_yaml())
        for folder, kind in kinds
        for name, make in CATALOG.items()
    }
    for example in sorted((argo / "examples").glob("*.py")):
        workflow = runpy.run_path(str(example))["workflow"]
        generated[example.with_suffix(".yaml")] = HEADER.format(source=example.name) + workflow.to_yaml()
    return generated


def main() -> None:
    """Write them all."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m mxnet_argo FOLDER, which is `argo` in a checkout")
    for path, text in files(Path(sys.argv[1])).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
