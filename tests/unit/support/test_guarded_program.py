"""A test that fails, or is skipped, beside a program that it has started is over at once."""

import signal
import subprocess
import sys

import pytest
from guarded_program import GuardedProgram

ENDLESS = [sys.executable, "-c", "import time; print('begun', flush=True); time.sleep(1000)"]


def test_a_failure_beside_a_program_ends_it() -> None:
    with (
        pytest.raises(pytest.skip.Exception),
        GuardedProgram(ENDLESS, stdout=subprocess.PIPE) as program,
    ):
        pytest.skip("no kubectl")
    assert program.returncode == -signal.SIGKILL


def test_who_waits_for_a_line_that_never_comes_finds_the_end_of_the_output() -> None:
    with GuardedProgram(ENDLESS, stdout=subprocess.PIPE, seconds=3) as program:
        assert program.stdout is not None
        assert not any("done" in line for line in program.stdout)
    assert program.returncode == -signal.SIGKILL
