"""The first of the seeds that nobody has tried yet: drawn once for a run of pytest, shown, the same in every worker."""

import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import settings

VARIABLE = "MXJOB_FRESH_SEED"
_LOWEST, _HIGHEST = 10**9, 10**12
"""Above all seeds that are written down anywhere, below what is tiresome to type."""


_all_draws: list[bool] = []


def drawn(many: int, few: int) -> int:
    """How much to draw in this run: many with TIER=all, else few."""
    return many if _all_draws else few


def first_fresh_seed() -> int:
    """The first of the fresh seeds of this run."""
    return int(os.environ[VARIABLE])


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draw it before workers start, which inherit the environment; of all tests, Hypothesis begins with it too."""
    os.environ.setdefault(VARIABLE, str(random.SystemRandom().randrange(_LOWEST, _HIGHEST)))
    # Its own profile for CI draws the same examples in each run, whatever its seed; its default one asserts a time.
    if (config.getoption("--tier") or "all") == "all":
        _all_draws.append(True)
    fresh = {"derandomize": False, "deadline": None, "print_blob": True, "max_examples": drawn(100, 25)}
    settings.register_profile("fresh", settings.default, **fresh)
    settings.load_profile("fresh")
    if config.getoption("--tier") == "all" and config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(first_fresh_seed())


def pytest_report_header() -> str:
    """Show it at the beginning, whatever comes."""
    return f"fresh seeds from {first_fresh_seed()}: {VARIABLE}={first_fresh_seed()} runs the same again"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show it at the end as well where tests used it, passed or not: with -q there is no header."""
    everything = terminalreporter.config.getoption("--tier") == "all"
    if everything or any("fresh" in report.nodeid for report in _reports(terminalreporter)):
        terminalreporter.write_line(pytest_report_header())


def _reports(terminalreporter: pytest.TerminalReporter) -> Iterator[pytest.TestReport]:
    for outcome in ("passed", "failed"):
        yield from terminalreporter.stats.get(outcome, ())
