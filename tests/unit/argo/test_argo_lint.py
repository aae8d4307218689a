"""Argo's own command lints what is shipped and shown of its objects: templates, examples, and the page's blocks."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import argo_page
import pytest
import yaml
from deployment import rendered
from hera.workflows import DAG, Workflow
from kubernetes_programs import programs_or_skip

from mxnet_argo import mxjob_ref

ARGO = Path(__file__).parents[3] / "argo"
TEMPLATES = ARGO / "templates"
SHIPPED = sorted((TEMPLATES / "workflows").glob("mxjob-*.yaml"))
EXAMPLES = sorted((ARGO / "examples").glob("*.yaml"))

pytestmark = pytest.mark.programs("argo")


def linted(*files: Path) -> "subprocess.CompletedProcess[str]":
    """What `argo lint` says of files, which may refer to each other."""
    command = [programs_or_skip(["argo"])["argo"], "lint", "--offline", "--no-color", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def shown(folder: Path) -> Iterator[Path]:
    """Each workflow of the page as a file."""
    programs = (
        subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, check=True).stdout
        for each in argo_page.programs()
    )
    of_trigger = yaml.safe_dump(argo_page.trigger()["source"]["resource"])
    for number, text in enumerate([*programs, of_trigger]):
        (folder / f"block-{number}.yaml").write_text(text)
        yield folder / f"block-{number}.yaml"


def test_templates_examples_and_the_pages_blocks_have_no_mistake(tmp_path: Path) -> None:
    of_page = list(shown(tmp_path))
    assert len(of_page) == 2
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(rendered(TEMPLATES / "cluster")))
    done = linted(*SHIPPED, tmp_path / "cluster.yaml", *EXAMPLES, *of_page)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "no linting errors found" in done.stdout


def test_a_wrong_tag_within_a_list_is_one(tmp_path: Path) -> None:
    """Argo checks no references of expressions, as which `mxjob_ref` writes those of a list."""
    given = {"image": "a:1", "command": ["python"]}

    def referring(tag: str) -> Path:
        with Workflow(name="w", entrypoint="both") as workflow, DAG(name="both"):
            first = mxjob_ref("one", "mxjob-train", given)
            first >> mxjob_ref("two", "mxjob-train", {**given, "args": ["--from", tag]})
        (tmp_path / "w.yaml").write_text(str(workflow.to_yaml()))
        return tmp_path / "w.yaml"

    for tag in ("{{tasks.one.outputs.parameters.result}}", "{{workflow.name}}"):
        assert linted(referring(tag), *SHIPPED).returncode == 0, tag
    for tag in (
        "{{tasks.one.outputs.parameters.reslt}}",
        "{{tasks.one.outputs.result}}",
        "{{tasks.on.outputs.parameters.result}}",
        "{{workflow.parameters.lrr}}",
    ):
        done = linted(referring(tag), *SHIPPED)
        assert done.returncode == 1, tag
        assert f"failed to resolve {tag}" in done.stdout
