"""Where to add a replica type, a kind of child, an older format or a verb: what CONTRIBUTING says, as it stands.

Each is one file and one row, or a row alone. That the kind of child works is shown beside the others' tests, in
tests/unit/controller/test_controller_child_kinds.py.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mxnet_operator

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(mxnet_operator.__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {
    "controller/children/hosts.py": "the ConfigMaps with a job's hosts",
    "api/formats/acme.py": "acme.example",
    "cli/verbs/state.py": "`mxjob state`",
}
"""New files, each with words of its first line."""
ROWS = {
    "api/replica_types.py": ("_TABLE: Final = (\n", "_TABLE: Final = (\n    {},\n"),
    "controller/children/__init__.py": (
        "KINDS: Final[tuple[ChildKind, ...]] = (SERVICES, PODS)",
        "from mxnet_operator.controller.children.hosts import HOSTS\n{}",
    ),
    "api/formats/__init__.py": (
        "FORMATS: Final[tuple[Format, ...]] = (V1, FLAT_V1, V1BETA1, V1ALPHA1, MXNETJOB, FIORAVANZO, MLKUBE)",
        "from mxnet_operator.api.formats.acme import ACME\n{}",
    ),
    "cli/mxjob.py": ('app.with_version("mxjob")\n', '{}\napp.with_version("mxjob")\n'),
}
"""Files that get a row: what the row takes the place of, and the row with its import."""
FACTS = """
import json
from mxnet_operator.api import conversion, job_formats
from mxnet_operator.api.definitions import definitions, legacy_definitions
from mxnet_operator.api.names import REPLICA_TYPES
from mxnet_operator.api.validation import validate
from mxnet_operator.controller.children import KINDS

container = {"name": "mxnet", "image": "digits:1.0"}
template = {"spec": {"containers": [container]}}
older = {
    "apiVersion": "acme.example/v1alpha1",
    "kind": "MXJob",
    "metadata": {"name": "digits"},
    "spec": {"replicaSpecs": [{"replicas": 2, "template": template}]},
}
evaluated = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MXJob",
    "metadata": {"name": "digits"},
    "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": dict.fromkeys(("Worker", "Evaluator"), {"template": template})},
}
print(json.dumps({
    "types": REPLICA_TYPES,
    "wrong": [str(error) for job in (older, evaluated) for error in validate(job)],
    "children": [kind.create.__name__ for kind in KINDS],
    "groups": [each["spec"]["group"] for each in legacy_definitions()],
    "described": "Evaluator" in json.dumps(definitions()),
    "format": job_formats.format_of(older).name,
    "workers": job_formats.to_v1(older)["spec"]["mxReplicaSpecs"]["Worker"]["replicas"],
}))
"""


def blocks() -> list[str]:
    return BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has the four of CONTRIBUTING."""
    folder = tmp_path_factory.mktemp("extended")
    copy = folder / "mxnet_operator"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    rows = list(blocks())
    for path, words in FILES.items():
        (text,) = (each for each in rows if each.startswith('"""') and words in each.partition("\n")[0])
        rows.remove(text)
        (copy / path).write_text(text)
    assert len(rows) == len(ROWS)
    for row, (path, (old, new)) in zip(rows, ROWS.items(), strict=True):
        code = (copy / path).read_text()
        assert code.count(old) == 1, path
        (copy / path).write_text(code.replace(old, new.replace("{}", row.rstrip("\n"))))
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_type_a_kind_of_child_and_an_older_format_are_there_once_their_row_is(extended: Path) -> None:
    done = run(extended, "-c", FACTS)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert "Evaluator" in facts["types"]
    assert facts["described"]
    assert facts["wrong"] == []
    assert facts["children"] == ["CreateService", "CreateHosts", "CreatePod"]
    assert "acme.example" in facts["groups"]
    assert (facts["format"], facts["workers"]) == ("acme", 2)


def test_a_verb_is_there_once_its_row_is(extended: Path) -> None:
    done = run(extended, "-m", "mxnet_operator.cli.mxjob", "state", "--help")
    assert done.returncode == 0, done.stderr
    assert "Print the state of a job in one word." in done.stdout
    assert "Exit codes" in done.stdout
