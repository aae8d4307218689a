"""What a person reads of a test run: what it waits for, and at its end what failed, was skipped, or was left out."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import pytest
from kubernetes_programs import build_status
from tiers import tier_of

SECONDS_ON_A_TERMINAL, SECONDS_IN_A_PIPE = 1.0, 60.0
"""How often the waiting line changes on a terminal, and how often another is written into a pipe."""
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


class Waiting:
    """What pytest's workers do, for a line whenever they have reported no result for some seconds.

    Args:
        silence: Seconds without a result or a line.
        clock: Seconds, monotonic.
    """

    def __init__(self, silence: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._silence = silence
        self._clock = clock
        self._began = self._said = clock()
        self._running: Mapping[str, float] = {}
        self._is_collected = False

    def collected(self) -> None:
        """Note that a worker knows all tests."""
        self._is_collected = True

    def started(self, test: str) -> None:
        """Note that a test begins."""
        self._running = {**self._running, test: self._clock()}

    def reported(self, test: str, *, is_over: bool) -> None:
        """Note a result, which pytest shows."""
        self._said = self._clock()
        if is_over:
            self._running = {each: since for each, since in self._running.items() if each != test}

    def line(self) -> str | None:
        """What there is to say now, if it is time."""
        now = self._clock()
        if now - self._said < self._silence:
            return None
        self._said = now
        built = build_status()
        return f"after {now - self._began:.0f} s: {self._doing(now)}{f'; Go builds {built}' if built else ''}"

    def _doing(self, now: float) -> str:
        if not self._is_collected:
            return "pytest's workers collect the tests"
        running = ", ".join(f"{test} ({now - since:.0f} s)" for test, since in self._running.items())
        return running or "pytest's workers wait for programs, or stop what they started"


class Announcer:
    """Writes the lines of a `Waiting` from its own thread: one that changes on a terminal, one a minute into a pipe."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._is_terminal = reporter.isatty
        self._waiting = Waiting(SECONDS_ON_A_TERMINAL if self._is_terminal else SECONDS_IN_A_PIPE)
        self._shown = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._announce, name="progress", daemon=True)

    def _announce(self) -> None:
        while not self._ended.wait(1.0):
            if line := self._waiting.line():
                with self._lock:
                    self._write(line)

    def _write(self, line: str) -> None:
        if not self._shown:
            self._reporter.write("\n")  # the line of the results has no end yet
        if self._is_terminal:
            width = self._reporter._screen_width - 1
            self._reporter.write("\r\x1b[K" + (line if len(line) <= width else line[: width - 3] + "..."), flush=True)
            self._shown = True
        else:
            self._reporter.write(f"{line}\n", flush=True)

    def _erase(self) -> None:
        with self._lock:
            if self._shown:
                self._reporter.write("\r\x1b[K")
                self._reporter._tw._current_line = ""  # pytest counts what stands before its percentage
                self._shown = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Begin."""
        self._thread.start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Note it."""
        self._waiting.collected()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note it."""
        self._waiting.started(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note it, and make room for what pytest writes."""
        self._erase()
        self._waiting.reported(report.nodeid, is_over=report.when == "teardown")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Fall silent."""
        self._ended.set()
        self._erase()


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
