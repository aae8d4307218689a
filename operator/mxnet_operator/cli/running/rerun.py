"""The user's command again, with the options for what a script lacks and for what it will miss next."""

import ctypes
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from mxnet_operator.cli.running.given_command import OF_A_DAY, given_command, given_values, is_given, is_mounted
from mxnet_operator.cli.running.proposed_day import day_of_packages, runnable_day
from mxnet_operator.cli.running.removals import PYTHON_2, REMOVALS, Removal
from mxnet_operator.cli.running.script import Script
from mxnet_operator.cli.running.setup_files import read_setup_file
from mxnet_operator.local.projects import IN_THE_IMAGE, NEWEST_PYTHON_OF_NUMPY, PROJECTS

_MODULES: Final = "/modules"
ON_CPU: Final = ("--env", "MXJOB_GPU=cpu")
_MXNET_PIN: Final = re.compile(r"\s*mxnet[\w-]*\s*==")
_NUMPY_PIN: Final = re.compile(r"\s*numpy\s*==\s*(\d+\.\d+)")
_SINCE: Final = {**dict.fromkeys(("mxnet.np", "mxnet.npx"), date(2020, 2, 21)), "cv2": date(2018, 5, 15)}
"""Modules, and a day on which the index has them: scripts had a nightly MXNet; wheels of OpenCV were deleted."""
_HEADLESS_SINCE: Final = "2018-09-01"
"""Day before which opencv-python-headless was not on the index."""
_USES_GPU: Final = re.compile(r"""^[^#]*\b(?:gpu\(|Context\(['"]gpu)""")
_DRAWS: Final = re.compile(r"\bplot_network\(")
_RENDERS: Final = re.compile(r"\.(?:render|view)\(")
_INSTALL: Final = re.compile(r"\bpip3?\s+install\s+([^`|&;]+)")
_REQUIREMENT: Final = re.compile(r"[A-Za-z][\w.-]*(?:\[[\w,-]+\])?(?:\s*[<>=!~]=?[^;]+)?")


@dataclass(frozen=True, slots=True)
class Lacks:
    """What a script lacks, as a failure shows it.

    Args:
        options: options that the failure asks for.
        removal: what the environment no longer has.
        module: the module that an import didn't find.
        folder: the folder that the script saves into.
        debian: the package of Debian that a package needs.
        program: the program that must run it.
        environment: options of the day, Python and MXNet; None for those that fit the folder.
    """

    options: tuple[str, ...] = ()
    removal: Removal | None = None
    module: str = ""
    folder: str = ""
    debian: str = ""
    program: tuple[str, ...] = ()
    environment: tuple[str, ...] | None = None


def rerun(script: Script | None, lacks: Lacks = Lacks()) -> str:
    """Return the command with the options for what a script lacks, and for all else that it is known to miss."""
    if script is None:
        return given_command(*lacks.options)
    text, environment = script.text, lacks.environment
    if environment is None:
        environment = fitting_environment(script, lacks.removal)
    pips: dict[str, str] = {}
    for each in _packages(script, lacks):
        is_early = "--as-of" in environment and environment[-1] < _HEADLESS_SINCE
        pips.setdefault(project_of(each), each.removesuffix("-headless") if is_early else each)
    given = lacks.options
    if text.above is not None and not is_given("--env") and "--env" not in given:
        given += modules_of(text.above)
    on_cpu = text.has(_USES_GPU) and not is_given("--gpus-per-worker") and not has_nvidia_driver()
    command = given_command(
        *(*given, *environment, *(word for each in pips.values() for word in ("--pip", each))),
        *(*mounts(script), *(ON_CPU if on_cpu else ())),
        by=lacks.program,
    )
    unmade = {each for each in text.saved_into if not (script.folder / each).exists()} | {lacks.folder} - {""}
    for each in sorted(unmade, reverse=True):
        command = f"mkdir -p {shlex.quote(os.path.relpath(script.folder / each))} && {command}"
    draws = shutil.which("dot") is None and text.has(_DRAWS) and text.has(_RENDERS)
    if debian := lacks.debian or ("graphviz" if draws else ""):
        return f"{'' if os.geteuid() == 0 else 'sudo '}apt-get install --yes {debian} && {command}"
    return command


def fitting_environment(script: Script, removal: Removal | None = None) -> tuple[str, ...]:
    """Return the options of the day of an old folder and its Python, or those that bring back what was removed.

    Empty where an environment was asked for and nothing in it is known to lack.
    """
    folder, text, lines = script.folder, script.text, lines_of(script.folder / "requirements.txt")
    if removal is None and (is_given(*OF_A_DAY) or any(map(_MXNET_PIN.match, lines))):
        return ()
    packages = PROJECTS.keys() & {each.partition(".")[0] for each in text.imports}
    days = (day_of_packages(folder, packages), *(_SINCE[each] for each in text.imports if each in _SINCE))
    first = max(filter(None, days), default=None)
    if text.is_python_2 or (removal is not None and removal.is_python_2):
        return PYTHON_2.options(runnable_day(folder, "2.7", first))
    day = runnable_day(folder, None, first)
    if removal is not None:
        return removal.options(day)
    numpy = next((pin[1] for pin in map(_NUMPY_PIN.match, lines) if pin is not None), "")
    python = NEWEST_PYTHON_OF_NUMPY.get(numpy)
    return (*(("--python", python) if python and day else ()), *(("--as-of", str(day)) if day else ()))


def has_nvidia_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def modules_of(folder: Path) -> tuple[str, ...]:
    """Return the options by which a script imports the modules of a folder outside its own."""
    return ("--mount", f"{os.path.relpath(folder)}:{_MODULES}:ro", "--env", f"PYTHONPATH={_MODULES}")


def mounts(script: Script) -> list[str]:
    """Return a `--mount` for each folder outside the script's own that it reads and no option mounts yet."""
    found = (f"{source}:{path}" for path, source in script.text.beside.items() if not is_mounted(path))
    return [word for each in found for word in ("--mount", each)]


def _packages(script: Script, lacks: Lacks) -> Iterator[str]:
    """Yield what the failure lacks, then what else the script imports and neither its image nor its files have."""
    imports, listed = script.text.imports, listed_requirements(script.folder)
    if lacks.removal is not None:
        yield from lacks.removal.packages
    parts = [each.split(".") for each in imports]
    modules = sorted({".".join(each[:count]) for each in parts for count in (1, 2)} - {lacks.module})
    imported = {project_of(each): each for name in modules for each in PROJECTS.get(name, "").split()}
    given = (*given_values("--pip"), *lines_of(script.folder / "requirements.txt"))
    there = {*map(project_of, given), *IN_THE_IMAGE}
    first = [imported.get(project_of(each), each) for each in PROJECTS.get(lacks.module, lacks.module).split()]
    more = sorted(each for name, each in imported.items() if name not in there)
    yield from (each if "=" in each else listed.get(project_of(each), each) for each in (*first, *more))
    for removal in REMOVALS:
        if removal.packages and removal.modules & imports and script.text.has(removal.uses):
            yield from (each for each in removal.packages if project_of(each) not in there)


def listed_requirements(folder: Path) -> dict[str, str]:
    """Return the requirements that the folder has in other files than the one that is installed, by project.

    A README names those that its author installs.
    """
    project = read_setup_file(folder)
    files = sorted((*folder.glob("requirement*.txt"), *folder.glob("requirements/*.txt")), reverse=True)
    told = (found[1] for each in folder.glob("README*") for line in lines_of(each) for found in _INSTALL.finditer(line))
    lines = (
        *(word.strip("'\",.;:()") for line in told for word in line.split()),
        *(project.requirements if project else ()),
        *(line.partition("#")[0].strip() for each in files for line in lines_of(each)),
    )
    return {project_of(each): each for each in lines if _REQUIREMENT.fullmatch(each)}


def lines_of(file: Path) -> list[str]:
    return file.read_text("utf-8-sig", "replace").splitlines() if file.is_file() else []


def project_of(requirement: str) -> str:
    """Return the project of a requirement line, one for OpenCV with and without windows."""
    found = re.match(r"\s*([\w.-]+)", requirement)
    name = re.sub(r"[-_.]+", "-", found[1].lower()) if found is not None else ""
    return name.removesuffix("-headless")  # both have the module cv2
