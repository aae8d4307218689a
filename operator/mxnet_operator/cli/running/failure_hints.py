"""The way out of a failure that users of old scripts meet, in one line with the whole command."""

import ctypes
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.running.given_command import OF_A_DAY, given_command, is_given, is_mounted
from mxnet_operator.cli.running.projects import PROJECTS
from mxnet_operator.cli.running.proposed_day import runnable_day
from mxnet_operator.cli.running.removals import PYTHON_2, Removal, removal_in
from mxnet_operator.cli.running.script import Script
from mxnet_operator.cli.running.script_text import (
    certain_failure,
    imported_names,
    named_beside,
    names_distributed_kvstore,
    names_python_2,
)

_IN_THE_IMAGE: Final = frozenset({"scikit-learn"})
"""Projects of the table that the images of MXNet have."""
_NO_MODULE: Final = re.compile(r"(?:ModuleNotFound|Import)Error: No module named '?([\w.]+)")
_SAID: Final = {"Onnx and protobuf need to be installed": "onnx", "IProgress not found": "ipywidgets"}
"""What a package says where another one lacks, and the name under which that is imported."""
_NO_FILE: Final = re.compile(
    r"No such file or directory|does not exist|cannot open|fail(?:ed)? to open|not found", re.IGNORECASE
)
_MODULES: Final = "/modules"
_USAGE: Final = "usage: "
_MXNET_PIN: Final = re.compile(r"\s*mxnet[\w-]*\s*==")
_SINCE: Final = dict.fromkeys(("mxnet.np", "mxnet.npx"), date(2020, 2, 21))
"""Modules of MXNet, and the day of the first release that has them; before it, scripts had a nightly build."""
_HEADLESS_SINCE: Final = "2018-09-01"
"""Day before which opencv-python-headless was not on the index."""
_NO_CUDA: Final = re.compile(
    r"compile with USE_CUDA=1|is not implemented for GPU|GPU is not enabled|built with CUDA support", re.IGNORECASE
)
_NO_DOWNLOAD: Final = re.compile(
    r"Max retries exceeded|urlopen error|Failed to resolve|Name or service not known|Temporary failure in name"
    r"|HTTP Error [45]\d\d|Failed downloading url|Connection refused'\)"
)
_URL: Final = re.compile(r"host='([^']+)'.*?with url: (\S+)|(https?://[^\s'\"]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FolderScript:
    """Script that ran in an image of its folder, with the packages added by `--pip`."""

    script: Script
    packages: Sequence[str] = ()


def refuse_what_must_fail(script: Script, *, needs_driver: bool) -> None:
    """Refuse a script that can't run, before its image is built.

    Raises:
        CommandError: it is Python 2, imports what a package of the image removed, or needs a driver that lacks (2).
    """
    file = script.python_file
    if (
        file is not None
        and not is_given(*OF_A_DAY)
        and (found := certain_failure(script.folder, file, script.search_folders)) is not None
    ):
        again = given_command(*_environment(found.removal, FolderScript(script)))
        raise CommandError(f"{found.why}: {again}", hint=f"  {found.place}", code=Exit.USAGE)
    if needs_driver and not _has_nvidia_driver():
        raise CommandError(
            "--gpus-per-worker: this machine lacks NVIDIA's driver (libcuda.so.1), which the MXNet for GPUs needs",
            hint="install the driver; or run on CPUs: leave out --gpus-per-worker; or on a cluster: --context NAME",
            code=Exit.USAGE,
        )


def _has_nvidia_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def trains_alone(script: Script, job: Mapping[str, Any]) -> str:
    """Return a warning where several Workers train without each other, for certain; else an empty text."""
    specs = job["spec"]["mxReplicaSpecs"]
    worker = specs.get("Worker") or {}
    if (worker.get("replicas") or 1) < 2 or "Scheduler" not in specs or script.file is None:
        return ""
    environment = [str(each) for one in _containers(worker) for each in one.get("env") or ()]
    if names_distributed_kvstore(script.folder, " ".join([*script.command, *environment])):
        return ""
    return (
        f"no file of {script.folder} and no argument names a distributed kvstore, such as dist_sync:"
        f" each of the {worker['replicas']} Workers trains alone, on all data"
    )


def failure_hint(message: str, job: Mapping[str, Any], ran: FolderScript | None) -> str:
    """Return the way out of a job's failure, from its last words; empty where none is known.

    `ran` is the script that had an image of its folder: only such an image can be had in another way.
    """
    return (
        (_removed(message, ran) or _missing(message, ran) or _beside(message, ran) if ran is not None else "")
        or _no_gpu(message, job)
        or _notebook(message, ran)
        or _download(message)
        or (_of_its_day(message, ran) if ran is not None else "")
    )


def _removed(message: str, ran: FolderScript) -> str:
    if (found := removal_in(message)) is None:
        return ""
    removal, words = found
    return f"{words}: {given_command(*_environment(removal, ran))}"


def _environment(removal: Removal, ran: FolderScript) -> list[str]:
    """Return the options that bring back what was removed, with all else that the script will miss next."""
    is_of_2 = removal is not PYTHON_2 and _is_python_2(ran)
    day = _runnable_day(ran, "2.7" if removal is PYTHON_2 or is_of_2 else None)
    options = [*PYTHON_2.options(day), *_pips(removal.packages)] if is_of_2 else [*removal.options(day)]
    there = {_project(each) for each in options}
    more = (each for each in _also_missing(ran) if _project(each) not in there)
    return [*options, *_pips(more), *_mounts(ran)]


def _day(ran: FolderScript) -> list[str]:
    """Return `--as-of` with the day of an old folder, and its Python 2, unless one of them or an MXNet is asked for."""
    if is_given(*OF_A_DAY) or any(_MXNET_PIN.match(each) for each in _lines(ran.script.folder / "requirements.txt")):
        return []
    if _is_python_2(ran):
        return [*PYTHON_2.options(_runnable_day(ran, "2.7"))]
    day = _runnable_day(ran)
    return [] if day is None else ["--as-of", str(day)]


def _runnable_day(ran: FolderScript, python: str | None = None) -> date | None:
    file = ran.script.python_file
    names = imported_names(file, ran.script.search_folders) if file is not None else ()
    return runnable_day(
        ran.script.folder, python, max((_SINCE[each] for each in names if each in _SINCE), default=None)
    )


def _is_python_2(ran: FolderScript) -> bool:
    file = ran.script.python_file
    return file is not None and names_python_2(file, ran.script.search_folders)


def _of_its_day(message: str, ran: FolderScript) -> str:
    """Return the day of an old folder, for a failure that nothing else explains; not for mistakes in arguments."""
    options = _day(ran)
    if not options or _USAGE in message:
        return ""
    again = given_command(*options, *_pips(_also_missing(ran)), *_mounts(ran))
    return f"the last commit of this folder is old; with MXNet and the packages of {options[-1]}: {again}"


def _beside(message: str, ran: FolderScript) -> str:
    """Return a hint at the folders beside the script's own that it reads, and the image doesn't have."""
    mounts = _mounts(ran) if _NO_FILE.search(message) else []
    return f"the image has the files of {ran.script.folder} only: {given_command(*mounts)}" if mounts else ""


def _mounts(ran: FolderScript) -> list[str]:
    """Return a `--mount` for each folder beside the script's own that it names and no option mounts yet."""
    file = ran.script.python_file
    found = [] if file is None else [each for each in named_beside(file, ran.script.folder) if not is_mounted(each)]
    return [word for each in found for word in ("--mount", f"{each}:{each}")]


def _pips(projects: Iterable[str]) -> list[str]:
    return [word for each in projects for word in ("--pip", each)]


def _missing(message: str, ran: FolderScript) -> str:
    found = _NO_MODULE.search(message)
    name = found[1] if found is not None else next((top for said, top in _SAID.items() if said in message), "")
    top = name.partition(".")[0]
    if not top:
        return ""
    if hint := _in_a_folder(name, ran):
        return hint
    listed = _listed(ran.script.folder)
    project = PROJECTS.get(top, top)
    if top not in PROJECTS and _project(top) not in listed:
        return f"{name} isn't in the image, and the package that has it may have another name: --pip PACKAGE"
    day = _day(ran)
    projects = [listed.get(_project(project), project), *_also_missing(ran, top)]
    if "--as-of" in day and day[-1] < _HEADLESS_SINCE:
        projects = [each.removesuffix("-headless") for each in projects]
    return f"{top} isn't in the image: {given_command(*_pips(projects), *day, *_mounts(ran))}"


def _also_missing(ran: FolderScript, top: str = "") -> list[str]:
    """Return the other projects that the script imports and neither the image nor a requirement names."""
    file = ran.script.python_file
    if file is None:
        return []
    there = {_project(each) for each in (*ran.packages, *_lines(ran.script.folder / "requirements.txt"))}
    parts = [each.split(".") for each in imported_names(file, ran.script.search_folders)]
    modules = {".".join(each[:count]) for each in parts for count in (1, 2)} - {top}
    wanted = {PROJECTS[each] for each in modules if each in PROJECTS} - {PROJECTS.get(top)}
    listed = _listed(ran.script.folder)
    return sorted(listed.get(_project(each), each) for each in wanted if _project(each) not in there | _IN_THE_IMAGE)


def _listed(folder: Path) -> dict[str, str]:
    """Return the requirements that the folder has in other files than the one that is installed, by project."""
    from mxnet_operator.cli.running.setup_files import read_setup_file  # noqa: PLC0415 - it needs the extra local

    project = read_setup_file(folder)
    files = (*folder.glob("requirements*.txt"), *folder.glob("requirements/*.txt"))
    lines = (line.partition("#")[0].strip() for each in sorted(files, reverse=True) for line in _lines(each))
    found = [*(project.requirements if project else ()), *lines]
    return {_project(each): each for each in found if each[:1].isalpha() and ";" not in each}


def _lines(file: Path) -> list[str]:
    return file.read_text("utf-8-sig", "replace").splitlines() if file.is_file() else []


def _project(requirement: str) -> str:
    found = re.match(r"\s*([\w.-]+)", requirement)
    return re.sub(r"[-_.]+", "-", found[1].lower()) if found is not None else ""


def _in_a_folder(module: str, ran: FolderScript) -> str:
    """Return a hint at a module of the user's that Python didn't find: not copied, or not where Python looks."""
    script = ran.script
    if script.python_file is None:
        return ""
    start, top = script.search_folders[0], module.partition(".")[0]
    if (here := _module_in(start, module)) is not None:
        return f"{here} isn't in the image: .dockerignore or .gitignore leaves it out, or its name, like checkpoints"
    if (here := _module_in(start, top)) is not None:
        return f"{here} has no {module.removeprefix(f'{top}.')}: is it another {top} than the script's?"
    more = (*_pips(_also_missing(ran)), *_day(ran), *_mounts(ran))
    if (here := _module_in(script.folder, module)) is not None:
        again = given_command("--env", "PYTHONPATH=.", *more)
        return f"{here} isn't beside the script, where Python looks: {again}"
    for folder in (Path.cwd(), *script.folder.parents[:2]):
        if (here := _module_in(folder, module)) is not None:
            mount = f"{os.path.relpath(folder)}:{_MODULES}:ro"
            again = given_command("--mount", mount, "--env", f"PYTHONPATH={_MODULES}", *more)
            return f"{here} isn't in the image, which has the files of {script.folder}: {again}"
    return ""


def _module_in(folder: Path, module: str) -> Path | None:
    path = folder.joinpath(*module.split("."))
    return next((each for each in (path.with_name(f"{path.name}.py"), path) if each.exists()), None)


def _no_gpu(message: str, job: Mapping[str, Any]) -> str:
    if not _NO_CUDA.search(message):
        return ""
    containers = [each for spec in job["spec"]["mxReplicaSpecs"].values() for each in _containers(spec)]
    if any("gpu" in name for each in containers for name in (each.get("resources") or {}).get("limits") or ()):
        return "the image's MXNet has no CUDA, which mx.gpu() needs: the image mxjob/mxnet:1.9.1-cu112 has it"
    again = given_command("--gpus-per-worker", "1")
    return (
        f"the script uses a GPU, and the image's MXNet is for CPUs. With a GPU: {again};"
        " without: leave out arguments like --gpus, or write mx.cpu() for mx.gpu()"
    )


def _notebook(message: str, ran: FolderScript | None) -> str:
    if "name 'get_ipython' is not defined" not in message:
        return ""
    file = ran.script.file if ran is not None else None
    name = "SCRIPT" if file is None else shlex.quote(os.path.relpath(file))
    return f"get_ipython() exists in notebooks only; comment its lines out: sed -i 's/^get_ipython()/#&/' {name}"


def _download(message: str) -> str:
    if not _NO_DOWNLOAD.search(message):
        return ""
    found = _URL.search(message)
    what = "" if found is None else f" of {found[3] or f'{found[1]}{found[2]}'}"
    again = "--mount FOLDER:PATH" if is_mounted("data") else given_command("--mount", "./data:data")
    return (
        f"the download{what} failed: get the files another way, and mount their folder where the script looks: {again}"
    )


def _containers(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    containers: Sequence[Mapping[str, Any]] = spec["template"]["spec"]["containers"]
    return containers
