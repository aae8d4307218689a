"""The workflows for a public host: pinned, with few rights, and with nothing of their own that .ci/run lacks."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
USES = re.compile(r"^\s*(?:- )?uses: (.+)$", re.MULTILINE)
HOST = re.compile(r"\b(?:[\w-]+\.)+(?:io|com|org|dev|net)\b")
"""A host: where images and packages go is for variables of the repository to say."""
ABSOLUTE = re.compile(r"(?<![\w.*}~$/])/(?:work|home|root|usr|opt|tmp|var)\b")


def read(path: Path):
    """A workflow; its key `on` is True to YAML 1.1."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(path: Path):
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def commands(path: Path) -> str:
    return "\n".join(step["run"] for step in steps(path) if "run" in step)


def loose_ends(text: str) -> list[str]:
    """What no workflow may have: actions that are not pinned, hosts, paths of a machine, expressions in a shell."""
    found = [f"not pinned: {each}" for each in USES.findall(text) if not PINNED.match(each.strip())]
    without_comments = re.sub(r"#.*|(?<=go install )\S+", "", text)  # a Go module's name is no host of ours
    found += [f"host: {each}" for each in HOST.findall(without_comments)]
    found += [f"path: {each}" for each in ABSOLUTE.findall(without_comments)]
    for step in [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]:
        found += [f"expression in a shell: {each}" for each in re.findall(r"\$\{\{.*?\}\}", step.get("run", ""))]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_pins_its_actions_and_names_no_host_and_no_machines_path(path):
    assert loose_ends(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_unless_a_job_needs_more(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    more = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert set(more) <= {"publish"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_a_release_signs_the_checksums_before_it_publishes_and_the_image_after_its_push():
    done = commands(GITHUB / "workflows" / "release.yml")
    order = ("cosign sign-blob", "gh release create", "docker buildx build", "cosign sign --yes")
    assert sorted(order, key=done.index) == list(order)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_runs_of_the_project_is_there(path):
    words = {word for line in commands(path).splitlines() for word in shlex.split(line, comments=True)}
    named = {word for word in words if word.startswith((".ci/", "tools/", "operator/"))}
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", commands(path))) <= targets
