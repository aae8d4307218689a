"""The way out of a failure that users of old scripts meet, in one line with the whole command."""

import ctypes
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.running.given_command import OF_A_DAY, given_command, given_values, is_given, is_mounted
from mxnet_operator.cli.running.projects import IN_THE_IMAGE, PROJECTS
from mxnet_operator.cli.running.proposed_day import day_of_packages, runnable_day
from mxnet_operator.cli.running.removals import PYTHON_2, Removal, removal_in
from mxnet_operator.cli.running.script import Script
from mxnet_operator.cli.running.script_text import names_distributed_kvstore
from mxnet_operator.cli.running.setup_files import read_setup_file

_NO_MODULE: Final = re.compile(r"(?:ModuleNotFound|Import)Error: No module named '?([\w.]+)")
_SAID: Final = {"Onnx and protobuf need to be installed": "onnx", "IProgress not found": "ipywidgets"}
"""What a package says where another one lacks, and the name under which that is imported."""
_NO_FILE: Final = re.compile(
    r"No such file or directory|does not exist|cannot open|fail(?:ed)? to open|not found", re.IGNORECASE
)
_MODULES: Final = "/modules"
_USAGE: Final = "usage: "
_MXNET_PIN: Final = re.compile(r"\s*mxnet[\w-]*\s*==")
_SINCE: Final = {
    **dict.fromkeys(("mxnet.np", "mxnet.npx"), date(2020, 2, 21)),
    "cv2": date(2018, 5, 15),
}
"""Modules, and a day on which the index has them: scripts had a nightly MXNet; wheels of OpenCV were deleted."""
_HEADLESS_SINCE: Final = "2018-09-01"
"""Day before which opencv-python-headless was not on the index."""
_NO_CUDA: Final = re.compile(
    r"compile with USE_CUDA=1|is not implemented for GPU|GPU is not enabled|built with CUDA support", re.IGNORECASE
)
_NO_DOWNLOAD: Final = re.compile(
    r"Max retries exceeded|urlopen error|Failed to resolve|Name or service not known|Temporary failure in name"
    r"|HTTP Error [45]\d\d|Failed downloading url|Connection refused'\)"
)
_IPYTHON: Final = ("--pip", "ipython", "--pip", "ipykernel", "--pip", "matplotlib")
_CPU: Final = ("--env", "MXJOB_GPU=cpu")
_USES_GPU: Final = re.compile(r"^[^#]*\bgpu\(")
_NO_DOT: Final = re.compile(r"failed to execute .*\bdot\b.*Graphviz", re.DOTALL)
_DRAWS: Final = re.compile(r"\bplot_network\(")
_RENDERS: Final = re.compile(r"\.(?:render|view)\(")
_NOT_OPENED: Final = re.compile(r"""(?:[Oo]pen|directory:) ["'](?:\./)?((?![./~])[^"'\n]*)/[^"'/\n]+["']""")
_SAVING: Final = re.compile(r"\b(?:\w*save\w*|export|dump|imwrite|do_checkpoint)\(|in save_")
_INSTALL: Final = re.compile(r"\bpip3?\s+install\s+([^`|&;]+)")
_REQUIREMENT: Final = re.compile(r"[A-Za-z][\w.-]*(?:\[[\w,-]+\])?(?:\s*[<>=!~]=?[^;]+)?")
_PROPOSED: Final = re.compile(r"(--(?:python|as-of|mxnet)) ([\d.-]*\d)")
_URL: Final = re.compile(r"host='([^']+)'.*?with url: (\S+)|(https?://[^\s'\"]+)", re.DOTALL)


def refuse_what_must_fail(script: Script, *, needs_driver: bool) -> None:
    """Refuse a script that can't run, before its image is built.

    Raises:
        CommandError: it is Python 2, imports what a package of the image removed, or needs a driver that lacks (2).
    """
    if not is_given(*OF_A_DAY) and (found := script.text.certain_failure) is not None:
        again = rerun(script, removal=found.removal)
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


def failure_hint(message: str, job: Mapping[str, Any], ran: Script | None) -> str:
    """Return the way out of a job's failure, from its last words; empty where none is known.

    `ran` is the script that had an image of its folder: only such an image can be had in another way.
    """
    return (
        (_removed(message, ran) or _missing(message, ran) or _beside(message, ran) if ran is not None else "")
        or _alone(message, job, ran)
        or _no_gpu(message, job, ran)
        or _no_dot(message, ran)
        or _unmade(message, ran)
        or _notebook(message, ran)
        or _download(message, ran)
        or (_of_its_day(message, ran) if ran is not None else "")
    )


def build_hint(message: str, ran: Script) -> str:
    """Return the whole command for the first option that an image's failed build proposes; empty where it has none."""
    found = _PROPOSED.search(message)
    return "" if found is None else f"run {rerun(ran, *found.groups())}"


def rerun(
    ran: Script | None,
    *own: str,
    removal: Removal | None = None,
    top: str = "",
    draws: bool = False,
    saves: str = "",
    by: Sequence[str] = (),
    environment: Sequence[str] | None = None,
) -> str:
    """Return the command with the options `own` and those for all that the script lacks and will miss next.

    Among that are what `removal` took away, the module `top`, a program of Graphviz if the script `draws`, and the
    folder that it `saves` into. The program `by` runs it. `environment` is chosen; by default it is the folder's.
    """
    if ran is None:
        return given_command(*own)
    text, environment = ran.text, _environment(ran, removal) if environment is None else environment
    pips: dict[str, str] = {}
    for each in (*(removal.packages if removal is not None else ()), *_lacking(ran, top)):
        is_early = "--as-of" in environment and environment[-1] < _HEADLESS_SINCE
        pips.setdefault(project_of(each), each.removesuffix("-headless") if is_early else each)
    on_cpu = text.has(_USES_GPU) and not is_given("--gpus-per-worker") and not _has_nvidia_driver()
    options = [*own, *environment, *(word for each in pips.values() for word in ("--pip", each)), *_mounts(ran)]
    command = given_command(*options, *(_CPU if on_cpu else ()), by=by)
    unmade = {each for each in text.saved_into if not (ran.folder / each).exists()} | {saves} - {""}
    for each in sorted(unmade, reverse=True):
        command = f"mkdir -p {shlex.quote(os.path.relpath(ran.folder / each))} && {command}"
    if shutil.which("dot") is None and (draws or (text.has(_DRAWS) and text.has(_RENDERS))):
        return f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install --yes graphviz && {command}"
    return command


def _environment(ran: Script, removal: Removal | None) -> list[str]:
    """Return the options of the day of an old folder and its Python, or those that bring back what was removed.

    None where an environment was asked for and nothing in it is known to lack.
    """
    folder, text = ran.folder, ran.text
    pins = any(_MXNET_PIN.match(each) for each in _lines(folder / "requirements.txt"))
    if removal is None and (pins or is_given(*OF_A_DAY)):
        return []
    packages = PROJECTS.keys() & {each.partition(".")[0] for each in text.imports}
    days = (day_of_packages(folder, packages), *(_SINCE[each] for each in text.imports if each in _SINCE))
    first = max(filter(None, days), default=None)
    if text.is_python_2 or (removal is not None and removal.is_python_2):
        return [*PYTHON_2.options(runnable_day(folder, "2.7", first))]
    day = runnable_day(folder, None, first)
    if removal is not None:
        return [*removal.options(day)]
    return [] if day is None else ["--as-of", str(day)]


def _alone(message: str, job: Mapping[str, Any], ran: Script | None) -> str:
    if ran is None or "node.hostname.size()" not in message or "Scheduler" in job["spec"]["mxReplicaSpecs"]:
        return ""
    return f"a dist_* kvstore needs --workers 2, or a server for one worker: {rerun(ran, '--servers', '1')}"


def _removed(message: str, ran: Script) -> str:
    if (found := removal_in(message)) is None:
        return ""
    removal, words = found
    if removal.until is not None:
        day = runnable_day(ran.folder)
        if day is None or day >= removal.until or ran.text.is_python_3 or is_given("--python"):
            return ""
    return f"{words}: {rerun(ran, removal=removal)}"


def _of_its_day(message: str, ran: Script) -> str:
    """Return the day of an old folder, for a failure that nothing else explains; not for mistakes in arguments."""
    options = _environment(ran, None)
    if not options or _USAGE in message:
        return ""
    return f"the last commit of this folder is old; with MXNet and the packages of {options[-1]}: {rerun(ran)}"


def _beside(message: str, ran: Script) -> str:
    """Return a hint at the folders beside the script's own that it reads, and the image doesn't have."""
    if not _NO_FILE.search(message) or not _mounts(ran):
        return ""
    return f"the image has the files of {ran.folder} only: {rerun(ran)}"


def _mounts(ran: Script) -> list[str]:
    """Return a `--mount` for each folder outside the script's own that it names and no option mounts yet."""
    found = (each for each in ran.text.beside if not is_mounted(each))
    return [word for each in found for word in ("--mount", f"{each}:{each}")]


def _missing(message: str, ran: Script) -> str:
    found = _NO_MODULE.search(message)
    name = found[1] if found is not None else next((top for said, top in _SAID.items() if said in message), "")
    top = name.partition(".")[0]
    if not top:
        return ""
    if hint := _in_a_folder(name, ran):
        return hint
    if top not in PROJECTS and project_of(top) not in _listed(ran.folder):
        if ran.text.is_python_2 and not is_given("--python"):
            return f"Python 3 doesn't find {name} beside the module that imports it: {rerun(ran)}"
        if _mounts(ran):
            return f"the image has the files of {ran.folder} only, without {name}: {rerun(ran)}"
        return f"{name} isn't in the image, and the package that has it may have another name: --pip PACKAGE"
    return f"{top} isn't in the image: {rerun(ran, top=top)}"


def _lacking(ran: Script, top: str) -> list[str]:
    """Return the project of the module `top`, and others that the script imports and no image or requirement has."""
    listed, parts = _listed(ran.folder), [each.split(".") for each in ran.text.imports]
    modules = sorted({".".join(each[:count]) for each in parts for count in (1, 2)} - {top})
    imported = {project_of(each): each for name in modules for each in PROJECTS.get(name, "").split()}
    given = (*given_values("--pip"), *_lines(ran.folder / "requirements.txt"))
    there = {*map(project_of, given), *IN_THE_IMAGE}
    first = [imported.get(project_of(each), each) for each in PROJECTS.get(top, top).split()]
    more = sorted(each for name, each in imported.items() if name not in there)
    return [each if "=" in each else listed.get(project_of(each), each) for each in (*first, *more)]


def _listed(folder: Path) -> dict[str, str]:
    """Return the requirements that the folder has in other files than the one that is installed, by project.

    A README names those that its author installs.
    """
    project = read_setup_file(folder)
    files = sorted((*folder.glob("requirement*.txt"), *folder.glob("requirements/*.txt")), reverse=True)
    told = (found[1] for each in folder.glob("README*") for line in _lines(each) for found in _INSTALL.finditer(line))
    words = (word.strip("'\",.;:()") for line in told for word in line.split())
    lines = (
        *words,
        *(project.requirements if project else ()),
        *(line.partition("#")[0].strip() for each in files for line in _lines(each)),
    )
    return {project_of(each): each for each in lines if _REQUIREMENT.fullmatch(each)}


def _lines(file: Path) -> list[str]:
    return file.read_text("utf-8-sig", "replace").splitlines() if file.is_file() else []


def project_of(requirement: str) -> str:
    """Return the project of a requirement line, one for OpenCV with and without windows."""
    found = re.match(r"\s*([\w.-]+)", requirement)
    name = re.sub(r"[-_.]+", "-", found[1].lower()) if found is not None else ""
    return name.removesuffix("-headless")  # both have the module cv2


def _in_a_folder(module: str, ran: Script) -> str:
    """Return a hint at a module of the user's that Python didn't find: not copied, or not where Python looks."""
    if ran.python_file is None:
        return ""
    start, top = ran.search_folders[0], module.partition(".")[0]
    if (here := _module_in(start, module)) is not None:
        return f"{here} isn't in the image: .dockerignore or .gitignore leaves it out, or its name, like checkpoints"
    if (here := _module_in(start, top)) is not None:
        return f"{here} has no {module.removeprefix(f'{top}.')}: is it another {top} than the script's?"
    if (here := _module_in(ran.folder, module)) is not None:
        again = rerun(ran, "--env", "PYTHONPATH=.")
        return f"{here} isn't beside the script, where Python looks: {again}"
    for folder in (Path.cwd(), *ran.folder.parents[:2]):
        if (here := _module_in(folder, module)) is not None:
            mount = f"{os.path.relpath(folder)}:{_MODULES}:ro"
            again = rerun(ran, "--mount", mount, "--env", f"PYTHONPATH={_MODULES}")
            return f"{here} isn't in the image, which has the files of {ran.folder}: {again}"
    return ""


def _module_in(folder: Path, module: str) -> Path | None:
    path = folder.joinpath(*module.split("."))
    return next((each for each in (path.with_name(f"{path.name}.py"), path) if each.exists()), None)


def _no_gpu(message: str, job: Mapping[str, Any], ran: Script | None) -> str:
    if not _NO_CUDA.search(message):
        return ""
    containers = [each for spec in job["spec"]["mxReplicaSpecs"].values() for each in _containers(spec)]
    if any("gpu" in name for each in containers for name in (each.get("resources") or {}).get("limits") or ()):
        return "the image's MXNet has no CUDA, which mx.gpu() needs: the image mxjob/mxnet:1.9.1-cu112 has it"
    if _has_nvidia_driver():
        return f"the script uses a GPU, and the image's MXNet is for CPUs: {rerun(ran, '--gpus-per-worker', '1')}"
    what = "with a GPU: --gpus-per-worker 1; with mx.cpu() for mx.gpu()"
    return f"the script uses a GPU, and this machine lacks NVIDIA's driver; {what}: {rerun(ran, *_CPU)}"


def _no_dot(message: str, ran: Script | None) -> str:
    return f"the script draws with a program of Graphviz: {rerun(ran, draws=True)}" if _NO_DOT.search(message) else ""


def _unmade(message: str, ran: Script | None) -> str:
    """Return a hint at a folder that the script saves into, and that isn't there."""
    found = _NOT_OPENED.search(message)
    if ran is None or found is None or not _SAVING.search(message) or (ran.folder / found[1]).exists():
        return ""
    return f"the script saves into {found[1]}, which doesn't exist: {rerun(ran, saves=found[1])}"


def _notebook(message: str, ran: Script | None) -> str:
    if "name 'get_ipython' is not defined" not in message or ran is None or ran.file is None:
        return ""
    by = ("python", "-m", "IPython", os.path.relpath(ran.file))
    return f"the script was a notebook; IPython runs it: {rerun(ran, *_IPYTHON, by=by)}"


def _download(message: str, ran: Script | None) -> str:
    if not _NO_DOWNLOAD.search(message):
        return ""
    found = _URL.search(message)
    what = "" if found is None else f" of {found[3] or f'{found[1]}{found[2]}'}"
    mounts = ran is not None and _mounts(ran)
    again = "--mount FOLDER:PATH" if is_mounted("data") else rerun(ran, *(() if mounts else ("--mount", "./data:data")))
    return (
        f"the download{what} failed: get the files another way, and mount their folder where the script looks: {again}"
    )


def _containers(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    containers: Sequence[Mapping[str, Any]] = spec["template"]["spec"]["containers"]
    return containers
