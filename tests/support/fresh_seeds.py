"""The first of the seeds that nobody has tried yet: drawn once for a run of pytest, shown, the same in every worker."""

import os
import random
from collections.abc import Iterator

import pytest

VARIABLE = "MXJOB_FRESH_SEED"
_LOWEST, _HIGHEST = 10**9, 10**12
"""Above all seeds that are written down anywhere, below what is tiresome to type."""


def first_fresh_seed() -> int:
    """The first of the fresh seeds of this run."""
    return int(os.environ[VARIABLE])


def pytest_configure() -> None:
    """Draw it before workers start: they inherit the environment."""
    os.environ.setdefault(VARIABLE, str(random.SystemRandom().randrange(_LOWEST, _HIGHEST)))


def pytest_report_header() -> str:
    """Show it at the beginning, whatever comes."""
    return f"fresh simulation seeds from {first_fresh_seed()}: {VARIABLE}={first_fresh_seed()} runs the same again"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show it at the end as well where tests used it, passed or not: with -q there is no header."""
    if any("fresh" in report.nodeid for report in _reports(terminalreporter)):
        terminalreporter.write_line(pytest_report_header())


def _reports(terminalreporter: pytest.TerminalReporter) -> Iterator[pytest.TestReport]:
    for outcome in ("passed", "failed"):
        yield from terminalreporter.stats.get(outcome, ())
