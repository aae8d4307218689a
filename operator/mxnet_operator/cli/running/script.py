"""A script as `mxjob run train.py` takes it: its folder and command, and a Dockerfile for another cluster."""

import contextlib
import difflib
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import mxnet_operator
from mxnet_operator.cli.errors import CommandError, Exit, extra_needed
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.running.images import image_name

_PROGRAMS: Final = frozenset({"python", "python3", "bash", "sh"})
_MANIFESTS: Final = (".yaml", ".yml", ".json")
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '(\w+)")
_SHOWN: Final = 5
_STEM_LENGTH: Final = 30
_IMAGES: Final = Path(mxnet_operator.__file__).parent / "local" / "images"
"""Folder of the Dockerfiles of the built-in images."""


@dataclass(frozen=True, slots=True)
class Script:
    """Command that runs in a folder: the current one, or that of a script which lies elsewhere."""

    folder: Path
    command: tuple[str, ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> "Script":
        """Read the words of a command line.

        Raises:
            CommandError: the script doesn't exist, or nothing says what runs it (exit code 2).
        """
        first, here = words[0], Path.cwd()
        if first.endswith(_MANIFESTS):
            raise _refused(f"{first} is a manifest", f"give it with -f: mxjob run -f {shlex.quote(first)}")
        if first.endswith(".ipynb"):
            made = shlex.quote(first.removesuffix(".ipynb") + ".py")
            how = f"make a script of it: jupyter nbconvert --to script {shlex.quote(first)}; then: mxjob run {made}"
            raise _refused(f"{first} is a notebook", how)
        if Path(first).is_dir():
            raise _refused(f"{first} is a folder, where a script is expected", _scripts_in(Path(first), "train.py"))
        if first in _PROGRAMS:
            script = next((word for word in words[1:] if not word.startswith("-")), "")
            if script.endswith((".py", ".sh")) and not Path(script).is_file():
                raise _no_script(script)
            return cls(here, tuple(words))
        if not Path(first).is_file():
            if first.endswith((".py", ".sh")):
                raise _no_script(first)
            raise _refused(
                f"no image given, in which {first} would run",
                f"give one that has it: mxjob run --image IMAGE -- {shlex.join(words)};"
                " or give a script: mxjob run train.py",
            )
        path = Path(os.path.abspath(first))  # noqa: PTH100 - a script that is a link stays where the link is
        is_below = path.is_relative_to(here) and str(here) not in {here.anchor, os.path.expanduser("~")}  # noqa: PTH111 - there may be no home
        folder, name = (here, str(path.relative_to(here))) if is_below else (path.parent, path.name)
        if first.endswith(".sh"):
            return cls(folder, ("bash", name, *words[1:]))
        return cls(folder, with_python([name if first.endswith(".py") else f"./{name}", *words[1:]]))

    def write_dockerfile(self, packages: Sequence[str]) -> bool:
        """Write a Dockerfile of the folder unless it has one, and its .dockerignore; returns whether it was written.

        Raises:
            CommandError: it can't be written.
        """
        path = self.folder / "Dockerfile"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(_dockerfile(self, packages))
            path = self.folder / ".dockerignore"
            with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
                file.write(_dockerignore(self.folder))
        except FileExistsError:
            return False
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror or error}") from error
        return True


def needs_image(script: Script, packages: Sequence[str], *, write: bool) -> CommandError:
    """Build the error for a cluster other than the local one; with `write` the folder gets a Dockerfile."""
    image = f"REGISTRY/{image_name(script.folder)}:1"
    if write:
        written = script.write_dockerfile(packages)
        say(f"Dockerfile {'written' if written else 'found, and left as it is'}: {script.folder / 'Dockerfile'}")
    folder, base = shlex.quote(str(script.folder)), shlex.quote(str(_IMAGES))
    again = shlex.join(_with_image(sys.argv[1:], image))
    return CommandError(
        "this cluster needs an image with the script, from a registry that it reads",
        hint="build one, push it, and run it (REGISTRY is yours):\n"
        f"  docker build -t mxjob/mxnet:1.9.1 -f {base}/mxnet-1.9.1.Dockerfile {base}\n"
        f"  docker build -t {image} {folder}\n"
        f"  docker push {image}\n"
        f"  mxjob {again}\n"
        "or run it on this machine: mxjob local up --detach; KUBECONFIG=$(mxjob local kubeconfig) mxjob run ...",
        code=Exit.USAGE,
    )


def with_python(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command whose first word is a Python script as `python SCRIPT`; any other as it is."""
    return ("python", *words) if words and words[0].endswith(".py") else tuple(words)


def missing_package(message: str) -> str:
    """Return a hint at the package that a failed script couldn't import; empty where that isn't why it failed."""
    found = _NO_MODULE.search(message)
    return f"{found[1]} isn't in the image; if it is a package of an index, add it: --pip {found[1]}" if found else ""


def path_in_code(message: str, job: Mapping[str, Any]) -> str:
    """Return a hint at a mount path that a failed script has in its code; empty where that isn't why it failed.

    The local cluster puts folders in the place of mount paths in arguments and variables only.
    """
    specs = [spec["template"]["spec"] for spec in job["spec"]["mxReplicaSpecs"].values()]
    mounts = (mount for spec in specs for each in spec["containers"] for mount in each.get("volumeMounts") or ())
    for path in {mount["mountPath"] for mount in mounts}:
        if "No such file" in message and re.search(rf"""['"]{re.escape(path)}[/'"]""", message):
            return f"the local cluster replaces {path} in arguments and variables, not in the script: pass it after --"
    return ""


def job_prefix(command: Sequence[str]) -> str:
    """Return the first part of the name of a job that has none: the script's name, or `train`."""
    script = next((word for word in command if word.endswith(".py")), "")
    stem = re.sub("[^a-z0-9]+", "-", Path(script).stem.lower())[:_STEM_LENGTH].strip("-")
    return stem if stem[:1].isalpha() else "train"


def _dockerfile(script: Script, packages: Sequence[str]) -> str:
    requirements = script.folder / "requirements.txt"
    added = list(packages)
    lines = [
        "# Image of this folder for MXJobs, written by `mxjob run`; change it as you like.",
        "FROM mxjob/mxnet:1.9.1",
        "WORKDIR /workspace",
    ]
    is_lock = requirements.is_file() and "--hash=" in requirements.read_text("utf-8", "replace")
    if is_lock:
        lines += ["COPY requirements.txt .", "RUN pip install --no-cache-dir --require-hashes -r requirements.txt"]
    elif requirements.is_file():
        lines += ["COPY requirements.txt ."]
        added = ["-r", "requirements.txt", *added]
    if added:
        lines += [
            "# The packages that MXNet needs keep their versions.",
            "RUN pip freeze >/tmp/base.txt && pip install --no-cache-dir -c /tmp/base.txt "
            + shlex.join(added)
            + ' && python -c "import mxnet"',
        ]
    words = ", ".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"' for word in script.command)
    lines += [
        "COPY . .",
        "# Scripts write where they run.",
        "RUN chown -R 65532:65532 /workspace",
        "USER 65532:65532",
        f"CMD [{words}]",
    ]
    return "\n".join([*lines, ""])


def _dockerignore(folder: Path) -> str:
    """Return a .dockerignore that leaves out what the local cluster does: keys, and what the .gitignore names."""
    with extra_needed("local"):
        from mxnet_operator.local.images import LEFT_OUT  # noqa: PLC0415
    lines = ["# Files that no image needs, and that none may have."]
    lines += [f"**/{each}" for each in LEFT_OUT]
    with contextlib.suppress(OSError):
        rules = (folder / ".gitignore").read_text("utf-8", "replace").splitlines()
        lines += ["# Lines of .gitignore.", *(_docker_rule(each.strip()) for each in rules)]
    return "\n".join([*lines, ""])


def _docker_rule(line: str) -> str:
    """Return a line of a .gitignore as one of a .dockerignore, where a name alone means the folder itself."""
    if not line or line.startswith("#"):
        return line
    negation, rule = ("!", line[1:]) if line.startswith("!") else ("", line)
    is_anywhere = "/" not in rule.rstrip("/")
    return f"{negation}**/{rule}" if is_anywhere else f"{negation}{rule.lstrip('/')}"


def _with_image(words: Sequence[str], image: str) -> list[str]:
    """Return the words of this command with an image, before a `--`."""
    kept = [word for word in words if word != "--dry-run"]
    end = kept.index("--") if "--" in kept else len(kept)
    return [*kept[:end], "--image", image, *kept[end:]]


def _no_script(name: str) -> CommandError:
    return _refused(f"{name}: there is no such file in {Path.cwd()}", _scripts_in(Path(), name))


def _scripts_in(folder: Path, name: str) -> str:
    """Return a hint at the scripts in a folder, the one that was probably meant first."""
    try:
        scripts = sorted(each.name for each in folder.iterdir() if each.suffix == ".py")
    except OSError:
        scripts = []
    if not scripts:
        return "give the path of a script: mxjob run FOLDER/train.py"
    stems = {Path(each).stem: each for each in scripts}
    near = [stems[each] for each in difflib.get_close_matches(Path(name).stem, stems, n=1)]
    shown = [str(folder / each) for each in dict.fromkeys([*near, *scripts])]
    if near and near[0] != Path(name).name:
        return f"did you mean {shown[0]}?"
    more = ", ..." if len(shown) > _SHOWN else ""
    return f"scripts there: {', '.join(shown[:_SHOWN])}{more}; for one of them: mxjob run {shlex.quote(shown[0])}"


def _refused(message: str, hint: str) -> CommandError:
    return CommandError(message, hint=hint, code=Exit.USAGE)
