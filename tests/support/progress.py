"""Say what a test run builds or waits for, at once: on a terminal, into a pipe, and from pytest's workers too."""

import sys
import threading
import time
from collections.abc import Callable, Mapping

import pytest

SILENCE = 30.0
"""Seconds without a result after which the tests that run are named."""


def say(config: pytest.Config, what: str) -> None:
    """Write a line to stderr past pytest's capture; a worker's stdout belongs to xdist."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        print(what, file=sys.stderr, flush=True)


class Waiting:
    """What xdist's workers are at, for a line whenever they have reported no result for some seconds.

    Args:
        silence: For how many seconds.
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
        return f"after {now - self._began:.0f} s: {self._doing(now)}"

    def _doing(self, now: float) -> str:
        if not self._is_collected:
            return "pytest's workers collect the tests"
        running = ", ".join(f"{test} ({now - since:.0f} s)" for test, since in self._running.items())
        return running or "pytest's workers build what the tests need, or end what they started"


class Announcer:
    """Writes the lines of a `Waiting`, from a thread of its own."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter
        self._waiting = Waiting(SILENCE)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._announce, name="progress", daemon=True)

    def _write(self, line: str) -> None:
        self._reporter.write_line("")  # the line that results stand in has no end yet
        self._reporter.write_line(line)
        self._reporter.flush()

    def _announce(self) -> None:
        while not self._ended.wait(SILENCE / 10):
            if line := self._waiting.line():
                self._write(line)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self) -> None:
        """Say what comes first."""
        self._write("pytest's workers start and collect the tests: some twenty seconds for all of them")
        self._thread.start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Note it."""
        self._waiting.collected()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note it."""
        self._waiting.started(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note it."""
        self._waiting.reported(report.nodeid, is_over=report.when == "teardown")

    def pytest_sessionfinish(self) -> None:
        """Fall silent."""
        self._ended.set()


@pytest.hookimpl(trylast=True)  # pytest's reporter comes first
def pytest_configure(config: pytest.Config) -> None:
    """Watch the workers from the process that has them."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Announcer(reporter))
