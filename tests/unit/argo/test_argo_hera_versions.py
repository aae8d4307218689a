"""Hera 6, the one before Hera 7 that the rest of the tests have, makes the same of templates and examples."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from argo_files import ARGO, GENERATED, name_of
from locked_python import locked_python


@pytest.fixture(scope="module")
def made_by_hera_6(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hera") / "argo"
    shutil.copytree(ARGO, folder)
    python = locked_python("hera-6")
    environment = {**os.environ, "PYTHONPATH": f"{ARGO}:{ARGO.parent / 'operator'}"}
    script = "import hera._version as v, sys; assert v.version.startswith('6.'), v.version"
    subprocess.run([str(python), "-c", script], check=True)
    for file in folder.rglob("*.yaml"):
        if file.read_text().startswith("# Generated"):
            file.unlink()
    subprocess.run([str(python), "-m", "mxnet_argo", str(folder)], env=environment, check=True)
    return folder


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", GENERATED, ids=name_of)
def test_hera_6_makes_the_same_objects(made_by_hera_6: Path, path: Path) -> None:
    made = (made_by_hera_6 / path.relative_to(ARGO)).read_text()
    assert yaml.safe_load(made) == yaml.safe_load(path.read_text())
