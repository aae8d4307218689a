"""The way out of a failure that users of old scripts meet, in one line with the whole command."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mxnet_operator.cli.errors import UsageError
from mxnet_operator.cli.running.given_command import OF_A_DAY, is_given, is_mounted
from mxnet_operator.cli.running.proposed_day import runnable_day
from mxnet_operator.cli.running.removals import removal_in
from mxnet_operator.cli.running.rerun import (
    ON_CPU,
    Lacks,
    fitting_environment,
    has_nvidia_driver,
    lines_of,
    listed_requirements,
    modules_of,
    mounts,
    project_of,
    rerun,
)
from mxnet_operator.cli.running.script import Script
from mxnet_operator.cli.running.script_text import names_distributed_kvstore
from mxnet_operator.local.projects import PROJECTS

_NO_MODULE: Final = re.compile(r"(?:ModuleNotFound|Import)Error: No module named '?([\w.]+)")
_SAID: Final = {"Onnx and protobuf need to be installed": "onnx", "IProgress not found": "ipywidgets"}
"""What a package says where another one lacks, and the name under which that is imported."""
_NO_FILE: Final = re.compile(
    r"No such file or directory|does not exist|cannot open|fail(?:ed)? to open|not found", re.IGNORECASE
)
_USAGE: Final = "usage: "
_NO_CUDA: Final = re.compile(
    r"compile with USE_CUDA=1|is not implemented for GPU|GPU is not enabled|built with CUDA support", re.IGNORECASE
)
_NO_DOWNLOAD: Final = re.compile(
    r"Max retries exceeded|urlopen error|Failed to resolve|Name or service not known|Temporary failure in name"
    r"|HTTP Error [45]\d\d|Failed downloading url|Connection refused'\)"
)
_IPYTHON: Final = ("--pip", "ipython", "--pip", "ipykernel", "--pip", "matplotlib")
_SYSTEM: Final = {
    "graphviz": re.compile(r"failed to execute .*\bdot\b.*Graphviz", re.DOTALL),
    "libsndfile1": re.compile(r"sndfile library not found|libsndfile\.so"),
    "libgl1": re.compile(r"libGL\.so\.1: cannot open"),
}
"""Packages of Debian that Python's packages need, and what is said where one lacks."""
_NOT_OPENED: Final = re.compile(r"""(?:[Oo]pen|directory:) ["'](?:\./)?((?![./~])[^"'\n]*)/[^"'/\n]+["']""")
_SAVING: Final = re.compile(r"\b(?:\w*save\w*|export|dump|imwrite|do_checkpoint)\(|in save_")
_PROPOSED: Final = re.compile(r"(--(?:python|as-of|mxnet)) ([\d.-]*\d)")
_URL: Final = re.compile(r"host='([^']+)'.*?with url: (\S+)|(https?://[^\s'\"]+)", re.DOTALL)


def refuse_what_must_fail(script: Script, *, needs_driver: bool) -> None:
    """Refuse a script that can't run, before its image is built.

    Raises:
        CommandError: it is Python 2, imports what a package of the image removed, or needs a driver that lacks (2).
    """
    if not is_given(*OF_A_DAY) and (found := script.text.certain_failure) is not None:
        again = rerun(script, Lacks(removal=found.removal))
        raise UsageError(f"{found.why}: {again}", hint=f"  {found.place}")
    if needs_driver and not has_nvidia_driver():
        raise UsageError(
            "--gpus-per-worker: this machine lacks NVIDIA's driver (libcuda.so.1), which the MXNet for GPUs needs",
            hint="install the driver; or run on CPUs: leave out --gpus-per-worker; or on a cluster: --context NAME",
        )


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
    if ran is None:
        return _no_gpu(message, job, ran) or _download(message, ran)
    return (
        _removed(message, ran)
        or _missing(message, ran)
        or _other_program(message, ran)
        or _beside(message, ran)
        or _alone(message, job, ran)
        or _no_gpu(message, job, ran)
        or _unmade(message, ran)
        or _download(message, ran)
        or _of_its_day(message, ran)
    )


def build_hint(message: str, ran: Script) -> str:
    """Return the whole command for what an image's failed build proposes, or for the day of its folder; else empty."""
    if (found := _PROPOSED.search(message)) is not None:
        return f"run {rerun(ran, Lacks((found[1], found[2])))}"
    is_of_packages = "packages can't be added" in message
    return f"with packages of their day: {rerun(ran)}" if is_of_packages and fitting_environment(ran) else ""


def _removed(message: str, script: Script) -> str:
    if (found := removal_in(message)) is None:
        return ""
    removal, words = found
    if removal.until is not None:
        day = runnable_day(script.folder)
        if day is None or day >= removal.until or script.text.is_python_3 or is_given("--python"):
            return ""
    return f"{words}: {rerun(script, Lacks(removal=removal))}"


def _missing(message: str, script: Script) -> str:
    found = _NO_MODULE.search(message)
    name = found[1] if found is not None else next((top for said, top in _SAID.items() if said in message), "")
    top = name.partition(".")[0]
    if not top:
        return ""
    if hint := _in_a_folder(name, script):
        return hint
    if top not in PROJECTS and project_of(top) not in listed_requirements(script.folder):
        if script.text.is_python_2 and not is_given("--python"):
            return f"Python 3 doesn't find {name} beside the module that imports it: {rerun(script)}"
        if mounts(script):
            return f"the image has the files of {script.folder} only, without {name}: {rerun(script)}"
        told = (line for each in script.search_folders for line in lines_of(each / "requirements.txt"))
        if url := next((line for line in told if re.search(rf"://.*egg={top}\b|^{top}\s*@.*://", line)), ""):
            return f"{name} is on no index: copy its source beside the script, from {url}"
        return f"{name} isn't in the image, and the package that has it may have another name: --pip PACKAGE"
    return f"{top} isn't in the image: {rerun(script, Lacks(module=top))}"


def _in_a_folder(module: str, script: Script) -> str:
    """Return a hint at a module of the user's that Python didn't find: not copied, or not where Python looks."""
    if script.python_file is None:
        return ""
    start, top = script.search_folders[0], module.partition(".")[0]
    if (here := _module_in(start, module)) is not None:
        if here.name in script.text.beside:
            return f"{here} is a link out of the folder, which the image doesn't have: {rerun(script)}"
        return f"{here} isn't in the image: .dockerignore or .gitignore leaves it out, or its name, like checkpoints"
    if (here := _module_in(start, top)) is not None:
        return f"{here} has no {module.removeprefix(f'{top}.')}: is it another {top} than the script's?"
    is_relative = script.text.is_python_2 and not is_given("--python")
    below = () if is_relative else (*script.folder.glob("[!.]*/"), *script.folder.glob("[!.]*/[!.]*/"))
    for folder in (script.folder, *below):
        if (here := _module_in(folder, module)) is not None:
            again = rerun(script, Lacks(("--env", f"PYTHONPATH={os.path.relpath(folder, script.folder)}")))
            return f"{here} isn't beside the script, where Python looks: {again}"
    for folder in (Path.cwd(), *script.folder.parents[:2]):
        if (here := _module_in(folder, module)) is not None:
            again = rerun(replace(script, modules=(folder,)), Lacks(modules_of(folder)))
            return f"{here} isn't in the image, which has the files of {script.folder}: {again}"
    return ""


def _module_in(folder: Path, module: str) -> Path | None:
    path = folder.joinpath(*module.split("."))
    return next((each for each in (path.with_name(f"{path.name}.py"), path) if each.exists()), None)


def _beside(message: str, script: Script) -> str:
    """Return a hint at the folders beside the script's own that it reads, and the image doesn't have."""
    if not _NO_FILE.search(message) or not mounts(script):
        return ""
    return f"the image has the files of {script.folder} only: {rerun(script)}"


def _alone(message: str, job: Mapping[str, Any], script: Script) -> str:
    if "node.hostname.size()" not in message or "Scheduler" in job["spec"]["mxReplicaSpecs"]:
        return ""
    again = rerun(script, Lacks(("--servers", "1")))
    return f"a dist_* kvstore needs --workers 2, or a server for one worker: {again}"


def _no_gpu(message: str, job: Mapping[str, Any], script: Script | None) -> str:
    if not _NO_CUDA.search(message):
        return ""
    containers = [each for spec in job["spec"]["mxReplicaSpecs"].values() for each in _containers(spec)]
    if any("gpu" in name for each in containers for name in (each.get("resources") or {}).get("limits") or ()):
        return "the image's MXNet has no CUDA, which mx.gpu() needs: the image mxjob/mxnet:1.9.1-cu112 has it"
    if has_nvidia_driver():
        again = rerun(script, Lacks(("--gpus-per-worker", "1")))
        return f"the script uses a GPU, and the image's MXNet is for CPUs: {again}"
    what = "with a GPU: --gpus-per-worker 1; with mx.cpu() for mx.gpu()"
    return f"the script uses a GPU, and this machine lacks NVIDIA's driver; {what}: {rerun(script, Lacks(ON_CPU))}"


def _unmade(message: str, script: Script) -> str:
    """Return a hint at a folder that the script saves into, and that isn't there."""
    found = _NOT_OPENED.search(message)
    if found is None or not _SAVING.search(message) or (script.folder / found[1]).exists():
        return ""
    return f"the script saves into {found[1]}, which doesn't exist: {rerun(script, Lacks(folder=found[1]))}"


def _other_program(message: str, script: Script) -> str:
    """Return a hint at a package of Debian, or at IPython, which runs what was a notebook."""
    if debian := next((name for name, said in _SYSTEM.items() if said.search(message)), ""):
        return f"a package of the script needs {debian} of the system: {rerun(script, Lacks(debian=debian))}"
    if "name 'get_ipython' is not defined" not in message or script.file is None:
        return ""
    again = rerun(script, Lacks(_IPYTHON, program=("python", "-m", "IPython", os.path.relpath(script.file))))
    return f"the script was a notebook; IPython runs it: {again}"


def _download(message: str, script: Script | None) -> str:
    if not _NO_DOWNLOAD.search(message):
        return ""
    found = _URL.search(message)
    what = "" if found is None else f" of {found[3] or f'{found[1]}{found[2]}'}"
    guess = "~/.mxnet:~/.mxnet" if "/gluon/" in what else "./data:data"
    data = () if script is not None and mounts(script) else ("--mount", guess)
    again = "--mount FOLDER:PATH" if is_mounted("data") else rerun(script, Lacks(data))
    return (
        f"the download{what} failed: get the files another way, and mount their folder where the script looks: {again}"
    )


def _of_its_day(message: str, script: Script) -> str:
    """Return the day of an old folder, for a failure that nothing else explains; not for mistakes in arguments."""
    options = fitting_environment(script)
    if not options or _USAGE in message:
        return ""
    again = rerun(script)
    return f"the last commit of this folder is old; with MXNet and the packages of {options[-1]}: {again}"


def _containers(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    containers: Sequence[Mapping[str, Any]] = spec["template"]["spec"]["containers"]
    return containers
