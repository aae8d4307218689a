"""The Dockerfile, as far as it can be checked without a container engine: what it copies, locks and builds."""

import importlib.metadata
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
from deployment import OPERATOR, locked, one, rendered
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = OPERATOR.parent
DOCKERFILE = OPERATOR / "Dockerfile"


def instructions():
    """The Dockerfile's instructions: name and arguments."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def copies():
    """What is copied from the build context: sources, and where to."""
    words = [shlex.split(rest) for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    return [(sources, destination) for *sources, destination in words]


def unmet(requirements, lock, extra=""):
    """Those requirements that a lock doesn't satisfy."""
    needed = [Requirement(text) for text in requirements]
    return [
        str(each)
        for each in needed
        if each.marker is None or each.marker.evaluate({"extra": extra})
        if each.name != "mxnet-operator"
        if not each.specifier.contains(lock.get(canonicalize_name(each.name), Version("0")), prereleases=True)
    ]


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """A folder with just what is copied."""
    folder = tmp_path_factory.mktemp("context")
    for sources, destination in copies():
        for source in sources:
            found = ROOT / source
            target = folder / destination
            if found.is_dir():
                shutil.copytree(found, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(found, target)
    return folder


def built(source, folder):
    """The names in the wheel that is built from a source tree, without any network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_what_is_copied_makes_the_same_wheel_as_the_whole_checkout(context, tmp_path):
    assert built(context, tmp_path / "image") == built(ROOT, tmp_path / "checkout")


def test_all_that_is_copied_passes_the_ignore_file_and_nothing_else_does():
    lines = (OPERATOR / "Dockerfile.dockerignore").read_text().splitlines()
    passes = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert passes == {source for sources, _ in copies() for source in sources}


def test_the_lock_satisfies_what_the_controller_requires():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = [*project["dependencies"], *project["optional-dependencies"]["controller"]]
    assert unmet(direct, locked("controller.txt")) == []


def test_the_lock_is_complete_and_holds_the_versions_that_are_tested():
    lock = locked("controller.txt")
    tested = locked("dev.txt")
    assert {name: tested.get(name) for name in lock} == lock
    needed = [text for name in lock for text in importlib.metadata.requires(name) or ()]
    assert unmet(needed, lock) == []


def test_the_image_runs_as_the_deployments_user():
    user = next(rest for name, rest in reversed(instructions()) if name == "USER")
    context = one(rendered("standalone"), "Deployment")["spec"]["template"]["spec"]["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_the_image_starts_a_command_that_the_project_has():
    entrypoint = next(rest for name, rest in instructions() if name == "ENTRYPOINT")
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert [entrypoint] == [f'["{script}"]' for script in scripts if script == "mxnet-operator"]


TRAINING = ROOT / "examples" / "digits" / "mxjob.yaml"
ONLY_LOCKED = """
import importlib.metadata, re, sys
locked = set(sys.argv[1].split())
def name(distribution): return re.sub("[-_.]+", "-", distribution).lower()
absent = {
    module
    for module, distributions in importlib.metadata.packages_distributions().items()
    if not locked & set(map(name, distributions)) and not module.startswith(("mxnet_", "_"))
}
class Absent:
    def find_spec(self, fullname, path=None, target=None):
        if fullname in absent:
            raise ModuleNotFoundError(f"not in the image: {fullname}", name=fullname)
sys.meta_path.insert(0, Absent())
from mxnet_operator.cli.mxjob import main
sys.argv[:] = ["mxjob", "run", "-f", sys.argv[2], "--kubeconfig", "nowhere", "--adopt", "team", "--workflow", "w"]
main()
"""


def test_a_runner_of_argos_finds_its_command_in_the_image_with_all_that_it_imports(tmp_path):
    manifest = tmp_path / "job.yaml"
    manifest.write_text(TRAINING.read_text().replace("metadata:\n", "metadata:\n  labels: {team: a}\n", 1))
    image = " ".join(locked("controller.txt"))
    command = [sys.executable, "-c", ONLY_LOCKED, image, str(manifest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "no kubeconfig at nowhere" in done.stderr
