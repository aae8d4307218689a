"""A copy of the package with one mistake in it, and what the unit tests and the simulation say of that copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
from simulator.mutations import Mutation

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "operator/mxnet_operator"
UNIT_TESTS = "tests/unit/plan"
_FIRST_FAILURE = """
import logging, sys
from simulator.run import run_seed
logging.disable()
for seed in range(int(sys.argv[1])):
    try:
        wrong = run_seed(seed).wrong
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    if wrong:
        print(f"{seed + 1} {wrong}")
        break
"""


class Verdict(msgspec.Struct, frozen=True):
    """What caught a mistake; empty where nothing did."""

    mutation: Mutation
    unit_test: str = ""
    invariant: str = ""
    schedules: int = 0
    """How many it took until the invariant broke."""


def occurrences(mutation: Mutation) -> int:
    """How often its old text is in its file: once, if it still applies."""
    return (PACKAGE / mutation.file).read_text().count(mutation.old)


def judge(mutation: Mutation, folder: Path, schedules: int, *, unit_tests: bool = True) -> Verdict:
    """Make the mistake in a copy of the package below `folder`, and run what should notice."""
    copy = folder / "mxnet_operator"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / mutation.file
    file.write_text(file.read_text().replace(mutation.old, mutation.new))
    path = os.pathsep.join((str(folder), str(ROOT / "tests/support")))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout

    tested = run("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", UNIT_TESTS) if unit_tests else ""
    failed = re.search(r"^(?:FAILED|ERROR) (?:.*::)?(\S+)", tested, re.MULTILINE)
    seen = re.match(r"(\d+) (\w+)", run("-c", _FIRST_FAILURE, str(schedules)))
    return Verdict(
        mutation,
        failed.group(1) if failed else "",
        seen.group(2) if seen else "",
        int(seen.group(1)) if seen else 0,
    )
