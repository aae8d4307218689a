"""The end of a run says what was skipped and why, and what was left out and how to run it; a wait is said sparingly."""

from pathlib import Path

import pytest
import tiers
from progress import Waiting

TESTS = """
import pytest

@pytest.mark.exhaustive
def test_slow(): pass

@pytest.mark.sampled
@pytest.mark.parametrize("number", range(4))
def test_first_cell(number): assert number == 0

@pytest.mark.sampled("2", "3")
@pytest.mark.parametrize("number", range(4))
def test_named_cells(number): assert number > 1

@pytest.mark.programs("no-such-program")
@pytest.mark.parametrize("number", range(3))
def test_of_a_program(number): raise AssertionError
"""
CONFTEST = """
import pytest
from kubernetes_programs import KWOK, PACKAGES

PACKAGES["no-such-program"] = (KWOK, "")
pytest_plugins = ["tiers", "progress", "control_plane_fixtures"]
"""
INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
markers =
    exhaustive:
    sampled:
    programs:
    kubernetes:
"""


@pytest.mark.sampled
@pytest.mark.parametrize("workers", [["-n0"], ["-n1"]], ids=["alone", "with xdist"])
def test_a_run_names_the_commands_for_what_it_skips_and_leaves_out(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: list[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(tiers.__file__).parent))
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_it=TESTS)
    pytester.makeconftest(CONFTEST)
    pytester.makeini(INI)
    done = pytester.runpytest_subprocess("--tier=test", "-q", *workers)
    done.stdout.fnmatch_lines(
        ["3 skipped: `make programs` brings what is missing: *", "6 left out: `make test TIER=all` runs them*"],
        consecutive=True,
    )
    assert "3 passed" in done.outlines[-1]


def test_a_wait_is_said_once_in_its_time_with_the_tests_that_run() -> None:
    now = [0.0]
    waiting = Waiting(60, lambda: now[0])
    now[0] = 59
    assert waiting.line() is None
    now[0] = 60
    assert (waiting.line() or "").startswith("after 60 s: pytest's workers collect the tests")
    assert waiting.line() is None
    waiting.collected()
    waiting.started("tests/unit/test_a.py::test_one")
    now[0] = 120
    assert (waiting.line() or "").startswith("after 120 s: tests/unit/test_a.py::test_one (60 s)")
