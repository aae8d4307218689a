"""`python -m mxnet_argo FOLDER` writes the shipped templates, as argo/templates has them."""

import sys
from pathlib import Path

from hera.workflows import ClusterWorkflowTemplate, WorkflowTemplate

from mxnet_argo.catalog import CATALOG

HEADER = "# Generated from mxnet_argo/catalog.py by `make generate`. Don't edit.\n"


def files() -> dict[str, str]:
    """The text of each generated file, by its path in the folder."""
    kinds = (("", WorkflowTemplate), ("cluster/", ClusterWorkflowTemplate))
    return {
        f"{folder}{name}.yaml": HEADER + str(make(kind).to_yaml())
        for folder, kind in kinds
        for name, make in CATALOG.items()
    }


def main() -> None:
    """Write them all."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m mxnet_argo FOLDER")
    for path, text in files().items():
        target = Path(sys.argv[1], path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
