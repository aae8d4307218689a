"""The shipped templates are what the code generates, and kubectl can apply them."""

from pathlib import Path

import pytest
import yaml
from argo_files import ARGO, GENERATED, name_of
from deployment import rendered

from mxnet_argo.__main__ import files

TEMPLATES = ARGO / "templates"


@pytest.fixture(scope="module")
def generated() -> dict[Path, str]:
    return files(ARGO)


@pytest.mark.parametrize("path", GENERATED, ids=name_of)
def test_what_is_checked_in_is_what_the_code_generates(generated: dict[Path, str], path: Path) -> None:
    assert path.read_text() == generated.get(path), "it is stale: make generate"


@pytest.mark.parametrize("path", GENERATED, ids=name_of)
def test_what_is_checked_in_means_what_any_supported_hera_generates(generated: dict[Path, str], path: Path) -> None:
    """Their YAML breaks lines at other places: `tox -e lowest-core` has the oldest."""
    assert [*yaml.safe_load_all(path.read_text())] == [*yaml.safe_load_all(generated[path])]


def test_all_that_the_code_generates_is_checked_in(generated: dict[Path, str]) -> None:
    assert set(generated) == set(GENERATED)


def test_kubectl_applies_every_template_to_a_namespace_or_with_another_kind_to_all() -> None:
    files = {path: yaml.safe_load(path.read_text()) for path in (TEMPLATES / "workflows").glob("mxjob-*.yaml")}
    shipped = {made["metadata"]["name"]: made for made in files.values()}
    assert shipped.keys() == {path.stem for path in files}
    for folder, kind in ((TEMPLATES, "WorkflowTemplate"), (TEMPLATES / "cluster", "ClusterWorkflowTemplate")):
        made = {each["metadata"]["name"]: each for each in rendered(folder) if each["kind"] == kind}
        assert made == {name: {**each, "kind": kind} for name, each in shipped.items()}


def test_every_template_runs_as_an_account_that_is_shipped(generated: dict[Path, str]) -> None:
    accounts = {each["metadata"]["name"] for each in rendered(TEMPLATES) if each["kind"] == "ServiceAccount"}
    specs = [yaml.safe_load(text)["spec"] for path, text in generated.items() if path.is_relative_to(TEMPLATES)]
    named = [each.get("serviceAccountName") for spec in specs for each in (spec, *spec["templates"])]
    assert accounts == set(filter(None, named))
    assert all("serviceAccountName" in spec for spec in specs)
