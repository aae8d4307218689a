"""Whoever runs the tests reads what they wait for, also where the output goes into a pipe or a file."""

from pathlib import Path

import progress
import pytest
from progress import Waiting

ONE, OTHER = "tests/unit/test_a.py::test_one", "tests/unit/test_b.py::test_other"


class Now:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_what_runs_is_named_after_half_a_minute_without_a_result_and_again_after_another() -> None:
    now = Now()
    waiting = Waiting(30, now)
    assert waiting.line() is None
    now.seconds = 30
    assert waiting.line() == "after 30 s: pytest's workers collect the tests"
    assert waiting.line() is None
    waiting.collected()
    now.seconds = 60
    assert waiting.line() == "after 60 s: pytest's workers build what the tests need, or end what they started"
    waiting.started(ONE)
    waiting.started(OTHER)
    waiting.reported(OTHER, is_over=False)
    now.seconds = 89
    assert waiting.line() is None
    now.seconds = 90
    assert waiting.line() == f"after 90 s: {ONE} (30 s), {OTHER} (30 s)"
    waiting.reported(OTHER, is_over=True)
    now.seconds = 119
    assert waiting.line() is None
    now.seconds = 120
    assert waiting.line() == f"after 120 s: {ONE} (60 s)"


TESTS = """
def test_waits():
    with open("told") as pipe:  # until the run has said what it waits for
        pipe.read()
"""
CONFTEST = """
import os, pathlib, progress, pytest

progress.SILENCE = 0.1

class Telling:
    def __init__(self, reporter):
        self._write_line = reporter.write_line
        reporter.write_line = self

    def __call__(self, line, *args, **kwargs):
        self._write_line(line, *args, **kwargs)
        if "test_waits (" in line:
            pathlib.Path("told").write_text("")

@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        os.mkfifo("told")
        Telling(config.pluginmanager.getplugin("terminalreporter"))
"""


def test_a_run_in_several_processes_says_into_a_pipe_what_it_waits_for(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(progress.__file__).parent))
    pytester.makepyfile(test_it=TESTS)
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    done = pytester.runpytest_subprocess("-p", "progress", "-n1", "-q")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        ["pytest's workers start and collect the tests:*", "after * s: test_it.py::test_waits (* s)"]
    )
