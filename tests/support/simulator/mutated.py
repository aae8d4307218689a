"""A copy of a package with one mistake in it, and what the unit tests and the simulation say of that copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
from simulator.mutations import Mutation

ROOT = Path(__file__).parents[3]
PACKAGES = {
    "mxnet_operator": ROOT / "operator/mxnet_operator",
    "mxnet_provider": ROOT / "mxnet_provider",
    "mxnet_argo": ROOT / "argo/mxnet_argo",
}
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


class Result(msgspec.Struct, frozen=True):
    """Result of one mistake: what caught it; empty where nothing did."""

    mutation: Mutation
    unit_test: str = ""
    invariant: str = ""
    schedules: int = 0
    """How many it took until the invariant broke."""
    fails_its_test: bool = False
    """Whether the test failed that the mistake names."""

    @property
    def is_caught(self) -> bool:
        """Whether that caught it which is declared to: its test where it names one, else the simulation."""
        return self.fails_its_test if self.mutation.test else bool(self.invariant)

    @property
    def caught_by(self) -> str:
        """What of that is declared did catch it."""
        if not self.is_caught:
            return ""
        return self.mutation.test.rpartition("::")[2] or self.invariant


def occurrences(mutation: Mutation) -> int:
    """How often its old text is in its file: once, if it still applies."""
    return (PACKAGES[mutation.package] / mutation.file).read_text().count(mutation.old)


def judge(mutation: Mutation, folder: Path, schedules: int, *, unit_tests: bool = True) -> Result:
    """Make the mistake in a copy of the package below `folder`, and run what should notice.

    A mistake that makes a test wait in vain is caught when its patience ends, which is shorter here than elsewhere.
    """
    copy = folder / mutation.package
    shutil.copytree(PACKAGES[mutation.package], copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / mutation.file
    file.write_text(file.read_text().replace(mutation.old, mutation.new))
    path = os.pathsep.join((str(folder), str(ROOT / "tests/support")))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MXJOB_TEST_PATIENCE": "40"}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout

    def first_failure(tests: str) -> str:
        told = run("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests)
        failed = re.search(r"^(?:FAILED|ERROR) (?:.*::)?(\S+)", told, re.MULTILINE)
        return failed.group(1).partition("[")[0] if failed else ""

    seen = re.match(r"(\d+) (\w+)", run("-c", _FIRST_FAILURE, str(schedules)))
    its_name = mutation.test.rpartition("::")[2].partition("[")[0]
    return Result(
        mutation,
        first_failure(UNIT_TESTS) if unit_tests else "",
        seen.group(2) if seen else "",
        int(seen.group(1)) if seen else 0,
        bool(its_name) and first_failure(mutation.test) == its_name,
    )
