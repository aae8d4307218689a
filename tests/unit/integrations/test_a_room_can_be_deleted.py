"""A controller without an integration: its folder and its row in the registry are deleted, and nothing else."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mxnet_operator
from mxnet_operator.integrations.registry import ROWS

PACKAGE = Path(mxnet_operator.__file__).parent
ROOMS = {"argo": "Argo", "gangs": "gangs", "kueue": "Kueue", "worker_logs": "WorkerLogs"}
"""Folders, each with the name that its row in the registry calls."""
RUNS_A_JOB = """
import asyncio, sys
from pathlib import Path

from builders import make_mxjob
from controller_fixtures import submitted, world

import mxnet_operator
from mxnet_operator.integrations.registry import integrations

async def main():
    async with world(Path(sys.argv[1])) as w:
        await w.submit(submitted(make_mxjob("digits").scheduler().worker(2)))
        await w.run_to_success(await w.pods(3))
        await w.state("digits", "Succeeded")

asyncio.run(main())
print(mxnet_operator.__file__, *(each.name for each in integrations()), sep="\\n")
"""


def without(room: str, folder: Path) -> Path:
    """A copy of the package without this folder and its row."""
    copy = folder / "mxnet_operator"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / "integrations" / room)
    registry = copy / "integrations" / "registry.py"
    text, imports = re.subn(
        rf"^from mxnet_operator\.integrations\.{room} import .*\n", "", registry.read_text(), flags=re.MULTILINE
    )
    text, rows = re.subn(rf"^    lambda \w+: {ROOMS[room]}\(.*\),\n", "", text, flags=re.MULTILINE)
    assert (imports, rows) == (1, 1), "one row and its import"
    registry.write_text(text)
    return folder


def test_every_row_has_its_room() -> None:
    assert sorted(
        path.name for path in (PACKAGE / "integrations").iterdir() if (path / "__init__.py").exists()
    ) == sorted(ROOMS)
    assert len(ROWS) == len(ROOMS)


@pytest.mark.sampled
@pytest.mark.parametrize("room", ROOMS)
def test_without_its_folder_and_its_row_the_controller_runs_a_job(room: str, tmp_path: Path) -> None:
    paths = [str(without(room, tmp_path / "copy")), str(Path(__file__).parents[2] / "support")]
    program = f"import sys; sys.path[:0] = {paths!r}\n{RUNS_A_JOB}"
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    where, *names = ran.stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path / "copy")
    assert len(names) == len(ROOMS) - 1
