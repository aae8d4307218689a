"""All Dockerfiles of the project, as far as they can be checked without a container engine."""

import re

import pytest
from deployment import OPERATOR

ROOT = OPERATOR.parent
FILES = sorted((*OPERATOR.rglob("*Dockerfile"), *(ROOT / "examples").rglob("Dockerfile")))
BASES = [file for file in FILES if file.parent.name == "images"]
FOLDERS = [file.parent for file in FILES if "examples" in file.parts]


def name(path):
    return str(path.relative_to(ROOT))


def instructions(file):
    """Name and arguments of each instruction."""
    text = re.sub(r"^#.*\n", "", file.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def arguments(file, instruction):
    """What all instructions of a name say."""
    return [rest for each, rest in instructions(file) if each == instruction]


def lines_of(file):
    """The lines of a file that git or a builder reads as patterns."""
    return {line for line in file.read_text().splitlines() if line and not line.startswith("#")}


def test_these_are_the_dockerfiles():
    assert len(FILES) == 9
    assert len(BASES) == 3


@pytest.mark.parametrize("file", FILES, ids=name)
def test_its_base_has_a_version(file):
    variables = dict(each.split("=", 1) for each in arguments(file, "ARG"))
    for base in arguments(file, "FROM"):
        image = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], base.split()[0])
        assert re.fullmatch(r"mxjob/(mxnet:1\.9\.1|tvm:0\.27)|python:3\.\d+-slim-bookworm", image)


@pytest.mark.parametrize("file", FILES, ids=name)
def test_what_pip_installs_is_locked_with_hashes(file):
    commands = [command for rest in arguments(file, "RUN") for command in rest.split("&&") if " install " in command]
    by_pip = [command for command in commands if "pip" in command and "--no-index" not in command]
    assert all("--require-hashes" in command and " -r " in command for command in by_pip)
    assert bool(by_pip) == (file.parent not in FOLDERS)


@pytest.mark.parametrize("file", BASES, ids=name)
def test_a_base_is_made_of_its_lock_alone(file):
    lock = f"{file.name.removesuffix('.Dockerfile')}.txt"
    assert arguments(file, "COPY") == [f"{lock} /usr/local/share/mxjob/"]
    assert lines_of(file.with_name(f"{file.name}.dockerignore")) == {"*", f"!{lock}"}
    pins = re.findall(r"^\S+==\S+(.*\n(?: +--hash=.*\n)*)", file.with_name(lock).read_text(), flags=re.MULTILINE)
    assert pins
    assert all("--hash=sha256:" in pin for pin in pins)


@pytest.mark.parametrize("file", FILES, ids=name)
def test_it_says_what_it_is_itself_and_not_only_its_base(file):
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', " ".join(arguments(file, "LABEL"))))
    wanted = (
        {"title", "description", "licenses"}
        if file.parent == OPERATOR
        else {"title", "description", "version", "licenses"}
    )
    assert labels.keys() - {"revision"} == wanted
    assert labels["licenses"] == "Apache-2.0"


@pytest.mark.parametrize("file", FILES, ids=name)
def test_it_runs_as_nobody_unless_others_are_made_from_it(file):
    assert arguments(file, "USER")[-1:] == ([] if file in BASES else ["65532:65532"])


@pytest.mark.parametrize("folder", FOLDERS, ids=name)
def test_what_a_run_leaves_beside_a_script_does_not_reach_the_builder(folder):
    ignored = lines_of(folder / ".dockerignore")
    assert {"__pycache__/", "Dockerfile", ".dockerignore"} <= ignored
    if (folder / ".gitignore").exists():
        assert lines_of(folder / ".gitignore") | {".gitignore"} <= ignored
