"""The first commands of README.md and docs/start.md, as they stand: a local cluster, and a real training on it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_fixtures import LocalCluster
from waiting import MINUTES

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).resolve().parents[2]
ALREADY_DONE = ("make install", "export MXJOB_HOME=")
"""Lines that install the project, and name a home, as the test does itself."""


def first_commands(page: str, tmp: Path) -> str:
    """The first block of commands of a page that runs a job, with `tmp` for /tmp, where an earlier run's files are."""
    blocks = re.findall(r"^```shell\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    block = next(each for each in blocks if "mxjob run" in each)
    commands = "".join(line for line in block.splitlines(keepends=True) if not line.startswith(ALREADY_DONE))
    return commands.replace("/tmp/", f"{tmp}/")


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_first_commands_of_the_page_train(
    home: LocalCluster, mxnet_python: Path, tmp_path: Path, page: str
) -> None:
    environment = {name: value for name, value in home.environment.items() if name != "KUBECONFIG"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", first_commands(page, tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MINUTES,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Succeeded (scheduler 1/1, server 2/2, worker 2/2)" in done.stderr
    assert re.search(r"Worker of rank [01] of 2, kv-store dist_sync", done.stdout), done.stdout
