"""What a person reads of a test run: what it waits for, and at its end what failed, was skipped, or was left out."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pytest
from kubernetes_programs import build_status
from tiers import tier_of

SILENCE = 60.0
"""Seconds without a result after which a line says what runs."""
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


class Announcer:
    """Writes what pytest's workers do, from a thread of its own, whenever they have reported nothing for a minute."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._began = self._said = time.monotonic()
        self._running: Mapping[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._announce, name="progress", daemon=True)

    def _announce(self) -> None:
        while not self._ended.wait(1.0):
            now = time.monotonic()
            if now - self._said >= SILENCE:
                self._said = now
                built = build_status()
                tests = ", ".join(f"{test} ({now - since:.0f} s)" for test, since in self._running.items())
                doing = tests or "pytest's workers collect tests, wait for programs, or stop what they started"
                go = f"; Go builds {built}" if built else ""
                self._reporter.write(f"\nafter {now - self._began:.0f} s: {doing}{go}\n", flush=True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Begin."""
        self._thread.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test begins."""
        self._running = {**self._running, nodeid: time.monotonic()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a result, which pytest shows."""
        self._said = time.monotonic()
        if report.when == "teardown":
            self._running = {each: since for each, since in self._running.items() if each != report.nodeid}

    def pytest_sessionfinish(self) -> None:
        """Fall silent."""
        self._ended.set()


@pytest.hookimpl(trylast=True)  # pytest's reporter comes first
def pytest_configure(config: pytest.Config) -> None:
    """Watch the workers from the process that has them."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Announcer(reporter))


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
