"""Writes the files of the Helm chart from the manifests of kustomize: the same objects, edited in one place.

Copies, and not links: archives of a checkout, Git on Windows and much that carries a tree make plain files of links.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

OPERATOR: Final = Path(__file__).resolve().parent.parent / "operator"
TARGET: Final = OPERATOR / "charts" / "mxnet-operator"
SOURCES: Final[Mapping[str, str]] = {
    "crds/crd.yaml": "base/crd.yaml",
    "files/admission.yaml": "base/admission.yaml",
    "files/deployment.yaml": "base/deployment.yaml",
    "files/rbac.yaml": "base/rbac.yaml",
    "files/components/argo.yaml": "components/argo/rbac.yaml",
    "files/components/coscheduling.yaml": "components/coscheduling/rbac.yaml",
    "files/components/kueue.yaml": "components/kueue/rbac.yaml",
    "files/components/monitoring.yaml": "components/monitoring/monitoring.yaml",
    "files/components/network-policy.yaml": "components/network-policy/network-policy.yaml",
    "files/components/volcano.yaml": "components/volcano/rbac.yaml",
    "files/components/worker-logs.yaml": "components/worker-logs/rbac.yaml",
}
"""Manifest of each file of the chart."""


def chart_files() -> dict[Path, str]:
    """Return what each of these files of the chart has to hold."""
    return {TARGET / file: _copy(source) for file, source in SOURCES.items()}


def _copy(source: str) -> str:
    text = (OPERATOR / "manifests" / source).read_text(encoding="utf-8")
    return f"# From operator/manifests/{source}, by make generate: edit it there.\n{text}"


if __name__ == "__main__":
    for path, text in chart_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{TARGET}\n")
