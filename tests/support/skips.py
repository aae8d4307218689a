"""What was skipped, summed by reason: pytest's own list has a line for each place, hundreds where a program lacks."""

from collections import Counter
from collections.abc import Iterable

import pytest


def summed(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """A line for each reason with the number of tests, most first."""
    reasons: Counter[str] = Counter()
    for report in reports:
        said = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        reasons[" ".join(said.removeprefix("Skipped: ").split())] += 1
    return [f"{number} skipped: {reason}" for reason, number in reasons.most_common()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the sums."""
    for line in summed(terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(line)
