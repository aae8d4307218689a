"""The shipped templates are what the code generates, and kubectl can apply them."""

from pathlib import Path

import pytest
import yaml
from deployment import rendered

from mxnet_argo.__main__ import files

TEMPLATES = Path(__file__).parents[3] / "argo" / "templates"


@pytest.mark.parametrize("path", files())
def test_a_shipped_template_is_what_the_code_generates(path: str) -> None:
    assert (TEMPLATES / path).read_text() == files()[path], "it is stale: make generate"


@pytest.mark.parametrize("folder", [TEMPLATES, TEMPLATES / "cluster"])
def test_every_file_is_part_of_what_kubectl_applies(folder: Path) -> None:
    objects = rendered(folder)
    templates = {each["metadata"]["name"] for each in objects if each["kind"].endswith("WorkflowTemplate")}
    assert templates == {file.stem for file in folder.glob("mxjob-*.yaml")}


def test_every_template_runs_as_the_account_that_is_shipped() -> None:
    accounts = {each["metadata"]["name"] for each in rendered(TEMPLATES) if each["kind"] == "ServiceAccount"}
    users = {yaml.safe_load(text)["spec"]["serviceAccountName"] for text in files().values()}
    assert accounts == users
