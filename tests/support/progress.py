"""What a person reads at the end of a test run: what failed, was skipped, or was left out."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest
from tiers import tier_of

_LEFT_OUT = {
    "unit": "`make test` runs the local cluster, MXNet, TVM and Airflow too, `make test TIER=all` everything",
    "test": "`make test TIER=all` runs them, as CI does, and tests/node",
}


def say(config: pytest.Config, what: str) -> None:
    """Write a line to stderr past pytest's capture; a worker's stdout belongs to xdist."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(what, file=sys.stderr, flush=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: pytest.Session) -> None:
    """Take over what a worker of xdist deselected: the main process collects nothing."""
    deselected = getattr(node, "workeroutput", {}).get("deselected")
    if deselected:
        node.config.stash[_DESELECTED] = deselected


_DESELECTED = pytest.StashKey[int]()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count them."""
    if items:
        stash = items[0].config.stash
        stash[_DESELECTED] = stash.get(_DESELECTED, 0) + len(items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the count from a worker of xdist to the main process."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["deselected"] = session.config.stash.get(_DESELECTED, 0)


def summed(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """A line for each reason of a skip with the number of tests, most first."""
    reasons: Counter[str] = Counter()
    for report in reports:
        said = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        reasons[" ".join(said.removeprefix("Skipped: ").split())] += 1
    return [f"{number} skipped: {reason}" for reason, number in reasons.most_common()]


@pytest.hookimpl(wrapper=True, tryfirst=True)  # after pytest's own list of what failed
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[None]:
    """Write what was skipped, by its reasons, and what was left out, with the command that runs it."""
    yield
    for line in summed(terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(line)
    left, tier = config.stash.get(_DESELECTED, 0), tier_of(config)
    if left and tier in _LEFT_OUT:
        terminalreporter.write_line(f"{left} left out: {_LEFT_OUT[tier]}")
