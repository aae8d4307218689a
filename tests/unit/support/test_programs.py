"""`make programs` builds what is missing, says how far it is, and keeps each program that it has finished."""

import os
import re
import subprocess
import sys
from pathlib import Path

import kubernetes_programs
import pytest

GO = """#!/bin/sh
case "$1 $2" in
"mod download") echo "{\\"Dir\\": \\"$SOURCE\\"}" ;;
"build -o")
    for package; do :; done
    case "$package" in *"$BROKEN") echo "no such package" >&2; exit 1 ;; esac
    touch "$3$(basename "${package%/v3}")" ;;
esac
"""


@pytest.fixture
def make_programs(tmp_path: Path):
    """Runs it with a Go of which one program can't be built."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "source").mkdir()
    go = tmp_path / "bin" / "go"
    go.write_text(GO)
    go.chmod(0o755)

    def run(broken: str) -> "subprocess.CompletedProcess[str]":
        environment = {
            "PATH": f"{go.parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "SOURCE": str(tmp_path / "source"),
            "BROKEN": broken,
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        command = [sys.executable, kubernetes_programs.__file__]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_build_that_fails_is_named_and_the_next_run_builds_that_alone(make_programs) -> None:
    count = len(kubernetes_programs.PACKAGES) - 1  # scheduler-plugins is built on demand
    first = make_programs("cmd/kwok")
    assert first.returncode == 1
    assert re.search(
        r"^Building etcd, [12] of \d+ programs, about \d+ minutes for the rest$", first.stdout, re.MULTILINE
    )
    assert "kwok could not be built: no such package" in first.stderr
    assert first.stderr.endswith("Not built: kwok. `make programs` tries these again.\n")

    second = make_programs("nothing")
    assert second.returncode == 0, second.stderr
    assert [line for line in second.stdout.splitlines() if "1 of" in line] == [
        "Building kwok, 1 of 1 programs, about 2 minutes for the rest"
    ]
    assert f"All {count} programs are there" in second.stdout
    assert make_programs("kwok").returncode == 0
