"""Every fenced block of README and docs is run as it stands, in a fresh folder, or a comment above it says why not.

Python is executed, and what it prints is compared with the `text` block that follows it. A DAG's tasks are asked for
their job, a workflow's steps are built: each job must be one that the server takes, and several workers must be given a
kvstore to share a model by.
YAML is read, and an MXJob in it validated.
"""

import re
import runpy
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import airflow_home  # noqa: F401 - before anything imports Airflow
import pytest
import yaml

from mxnet_operator.api.validation import template_errors, unknown_fields, validate

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GENERATED = {"cli-reference.md"}
"""Made from what the program says of itself, and compared with that elsewhere."""
NO_CODE = {"text", "json", "mermaid", "shell", "console"}
"""Languages of what programs print, of pictures, and of commands, which test_commands.py reads."""
REASON = re.compile(r"<!-- (?:Not run by a test: (?:(?!-->).)+|Run by tests/\S+)\. -->\n+$")
BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: where it is, what it is, what follows as output, and whether a reason stands above it."""

    page: str
    line: int
    language: str
    text: str
    output: str | None
    has_reason: bool

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> list[Block]:
    found = []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        of_page = list(BLOCK.finditer(page))
        for block, following in zip(of_page, [*of_page[1:], None], strict=False):
            is_output = (
                following is not None
                and following["language"] == "text"
                and not page[block.end() : following.start()].strip()
            )
            found.append(
                Block(
                    path.name,
                    page.count("\n", 0, block.start()) + 1,
                    block["language"],
                    dedent(block["text"]),
                    dedent(following["text"]) if following is not None and is_output else None,
                    REASON.search(page[: block.start()]) is not None,
                )
            )
    return found


BLOCKS = blocks()
PYTHON = [each for each in BLOCKS if each.language == "python" and not each.has_reason]
YAML = [each for each in BLOCKS if each.language == "yaml" and not each.has_reason]


def test_every_block_is_run_or_says_why_not() -> None:
    silent = [
        each.id
        for each in BLOCKS
        if each not in PYTHON
        and each not in YAML
        and each.language not in NO_CODE
        and not each.has_reason
        and each.page not in GENERATED
    ]
    assert silent == []


def jobs_of(names: dict[str, Any]) -> list[dict[str, Any]]:
    """The MXJobs that a block's DAG or workflow makes."""
    from hera.workflows import Workflow

    from mxnet_argo import MXJobStep
    from mxnet_argo.checked_job import CheckedJob
    from mxnet_provider.operators.mxnet_job import MXNetJobOperator
    from mxnet_provider.operators.mxnet_sweep import MXNetSweep

    jobs = []
    for value in names.values():
        if isinstance(value, MXNetJobOperator):
            params = {name: str(each) for name, each in value.dag.params.items()}
            value.render_template_fields({"params": params})
            jobs.append(value.given_manifest())
        if isinstance(value, MXNetSweep):
            trial: Any = value.get_child_by_label("trial")
            jobs += [trial.unmap(each).given_manifest() for each in trial.expand_input.value]
        if isinstance(value, Workflow):
            steps = [each for each in value.templates if isinstance(each, MXJobStep)]
            assert len(yaml.safe_load(value.to_yaml())["spec"]["templates"]) > len(steps)  # the exit handler's
            of_steps = [CheckedJob(each) for each in steps]
            jobs += [each._sample(each.given(), {}) for each in of_steps]
    return jobs


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.id)
def test_python_runs_in_a_fresh_folder_and_prints_what_is_shown(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "block.py").write_text(block.text)
    monkeypatch.chdir(tmp_path)
    printed = StringIO()
    with redirect_stdout(printed):
        names = runpy.run_path("block.py")
    if block.output is not None:
        assert printed.getvalue() == block.output
    for job in jobs_of(names):
        named = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", **job, "metadata": {"name": "x"}}
        assert [*validate(named)] == []
        specs = job["spec"]["mxReplicaSpecs"]
        container = specs["Worker"]["template"]["spec"]["containers"][0]
        words = [*container.get("command", ()), *container.get("args", ())]
        assert specs["Worker"]["replicas"] == 1 or "--kv-store" in words, "its workers would train alone"


@pytest.mark.parametrize("block", YAML, ids=lambda block: block.id)
def test_yaml_can_be_read_and_an_mxjob_in_it_is_valid(block: Block) -> None:
    for document in yaml.safe_load_all(block.text):
        assert isinstance(document, dict)
        if document.get("kind") == "MXJob":
            assert [*validate(document), *template_errors(document), *unknown_fields(document)] == []
