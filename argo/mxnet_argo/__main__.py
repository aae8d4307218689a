"""`python -m mxnet_argo argo` writes what is generated there: templates, examples as YAML, Argo CD's ConfigMap."""

import runpy
import sys
from pathlib import Path

from mxnet_argo.catalog import CATALOG
from mxnet_operator.api import names

HEADER = "# Generated from {source} by `make generate`. Don't edit.\n"
READING = """\
# How to read the manifest of a job in it: each {{=...}} writes one parameter as JSON, whatever characters it has. Where
# a parameter is wrong it writes words instead, such as "workers is no whole number: two", with the tag !!null, which
# they don't fit, so that kubectl rejects the manifest with these words. `&args` names a value, and `*args` repeats it.
"""


def files(argo: Path) -> dict[Path, str]:
    """Return the text of each generated file, by its path in the repository's folder `argo`."""
    templates = argo / "templates" / "workflows"
    generated = {
        templates / f"{name}.yaml": HEADER.format(source="mxnet_argo/catalog.py") + READING + str(make().to_yaml())
        for name, make in CATALOG.items()
    }
    health = argo / "argocd" / "resource_customizations" / names.GROUP / names.KIND / "health.lua"
    generated[argo / "argocd" / "argocd-cm.yaml"] = _argocd(health)
    for example in sorted((argo / "examples").glob("*.py")):
        workflow = runpy.run_path(str(example))["workflow"]
        generated[example.with_suffix(".yaml")] = HEADER.format(source=example.name) + workflow.to_yaml()
    return generated


def _argocd(health: Path) -> str:
    """Return the part of Argo CD's ConfigMap that has the health check, as text that stays readable."""
    source = f"{health.parent.parent.name}/{health.parent.name}/{health.name}"
    lines = "".join(f"    {line}\n" if line else "\n" for line in health.read_text(encoding="utf-8").splitlines())
    return (
        HEADER.format(source=source)
        + "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: argocd-cm\ndata:\n"
        + f"  resource.customizations.health.{names.GROUP}_{names.KIND}: |\n{lines}"
    )


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m mxnet_argo FOLDER, which is `argo` in a checkout")
    for path, text in files(Path(sys.argv[1])).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
