"""Warning where the project of a script asks for another Python or MXNet than the image that the script would get."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import product
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from mxnet_operator.cli.running.given_command import OF_A_DAY, is_given
from mxnet_operator.cli.running.images import image_store
from mxnet_operator.cli.running.proposed_day import runnable_day
from mxnet_operator.cli.running.rerun import Lacks, project_of, rerun
from mxnet_operator.cli.running.script import Script
from mxnet_operator.cli.running.setup_files import SetupFile, read_setup_file
from mxnet_operator.local.images.day import PYTHONS, DayImage, MXNetRequirement, Wanted, choose
from mxnet_operator.local.images.environment import installed_interpreter
from mxnet_operator.local.images.requirements import Requirements, read_plain
from mxnet_operator.local.images.uv_process import ImageError

_TODAY: Final = DayImage("1.9.1", "3.11", date.max)
"""What the image has whose environment nobody chooses."""


def other_environment(script: Script, packages: Sequence[str]) -> str:
    """Return a warning where the project of a script asks for another Python or MXNet than its image has.

    It has the whole command. Empty where the image fits, where no image does, or the user chose the environment.
    """
    found = next(filter(None, map(read_setup_file, script.search_folders)), None)
    own = script.folder / "requirements.txt"
    with contextlib.suppress(ImageError, InvalidSpecifier), image_store() as store:
        given = (read_plain(own) or Requirements()) + Requirements.parse(packages, "--pip")
        if found is None or is_given(*OF_A_DAY) or (own.exists() and read_plain(own) is None):
            return ""
        pythons = SpecifierSet(found.python)
        pins = (MXNetRequirement.parse(each) for each in found.requirements)
        pin = None if given.mxnet else next(filter(None, pins), None)
        has = DayImage.parse(store.choose_base(script.folder, packages)[0]) or _TODAY
        lacks = [
            *([] if _allows(pythons, has.python) else [f"Python {found.python}"]),
            *([pin.text] if pin is not None and not pin.matches(has.mxnet) else []),
        ]
        days = dict.fromkeys((runnable_day(script.folder), None))
        for day, python in product(days, (None, *reversed(PYTHONS))) if lacks else ():
            if day is None and python is None and pin is None:
                continue
            with contextlib.suppress(ImageError):
                image = choose(Wanted(day, python), pin or given.mxnet, lambda each: bool(installed_interpreter(each)))
                if _allows(pythons, image.python):
                    chosen = (("--python", python) if python else ()) + (("--as-of", str(day)) if day else ())
                    pip = tuple(word for each in _to_add(found, given, image) for word in ("--pip", each))
                    return (
                        f"{found.name} asks for {' and '.join(lacks)}, and the image has MXNet {has.mxnet} and Python"
                        f" {has.python}: {rerun(script, Lacks(pip, environment=chosen))}"
                    )
    return ""


def _allows(pythons: SpecifierSet, python: str) -> bool:
    """Whether any patch release of a Python fulfils the specifiers."""
    return pythons.contains(python) or pythons.contains(f"{python}.99")


def _to_add(found: SetupFile, given: Requirements, image: DayImage) -> Iterator[str]:
    """Yield the requirements of a project that neither the image nor the user's requirements fulfil."""
    there = {project_of(line) for line, _ in given.lines}
    in_image = {"numpy", *map(project_of, image.requirements)}
    for line in found.requirements:
        with contextlib.suppress(InvalidRequirement):
            asked = Requirement(line)
            is_mxnet = MXNetRequirement.parse(line) is not None
            is_meant = asked.marker is None or asked.marker.evaluate({"python_version": image.python})
            if asked.url or not is_meant or (given.mxnet if is_mxnet else project_of(asked.name) in there):
                continue
            if asked.specifier or project_of(asked.name) not in in_image:
                yield line.partition(";")[0].strip()
