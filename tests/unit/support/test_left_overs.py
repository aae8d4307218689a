"""Nothing of a test run stays behind, however it ended."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from left_overs import MARK, dead_owners, identity
from waiting import eventually

SUPPORT = Path(__file__).resolve().parents[2] / "support"
TESTS = """
import os, signal, subprocess, sys, tempfile, time
from left_overs import folder_prefix

# As Airflow's parts do: they write their titles over what /proc shows of their environment.
TITLED = "from setproctitle import setproctitle; setproctitle('airflow api_server'); "
DEAF = TITLED + (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(1000)"
)

def test_starts():
    folder = tempfile.mkdtemp(prefix=folder_prefix())
    session = subprocess.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, start_new_session=True)
    session.stdout.readline()
    # What a detached cluster is: its parent is gone.
    fork = "import subprocess; print(subprocess.Popen(['sleep', '1000'], start_new_session=True, stdout=2).pid)"
    daemon = subprocess.run([sys.executable, "-c", fork], stdout=subprocess.PIPE, text=True).stdout
    print(folder, session.pid, daemon.strip(), flush=True)
    {then}
"""


class Killed:
    """A test run that has started what stays: its folder and processes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.process = process
        line = next(line for line in process.stdout if "mxjob-test-" in line)
        folder, *pids = line.split()
        self.folder = Path(folder)
        self.left = {int(pid): identity(int(pid)) for pid in pids}
        (self.watcher,) = (
            int(each)
            for each in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            if b"left_overs.py" in Path(f"/proc/{each}/cmdline").read_bytes()
        )

    def alive(self) -> list[int]:
        return [pid for pid, was in self.left.items() if identity(pid) == was]

    def gone(self) -> bool:
        return not self.alive() and not self.folder.exists()


Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start(pytester: pytest.Pytester) -> Iterator[Start]:
    """Starts a test run of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(then: str) -> "subprocess.Popen[str]":
        pytester.makepyfile(TESTS.replace("{then}", then))
        pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-p", "left_overs", "-p", "no:cacheprovider", "-s", "-q"],
            cwd=pytester.path,
            env=environment | {"PYTHONPATH": str(SUPPORT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_run_leaves_is_ended(start: Start, how: signal.Signals) -> None:
    run = Killed(start("time.sleep(1000)"))
    assert len(run.alive()) == 2
    run.process.send_signal(how)
    eventually(run.gone)


@pytest.mark.exhaustive
def test_what_a_run_was_killed_with_is_swept_by_the_next(start: Start) -> None:
    run = Killed(start("time.sleep(1000)"))
    os.kill(run.watcher, signal.SIGKILL)
    run.process.kill()
    run.process.wait()
    (dead,) = (owner for owner in dead_owners() if owner in run.folder.name)

    following = Killed(start("time.sleep(1000)"))

    assert run.gone()
    assert dead not in dead_owners()
    assert len(following.alive()) == 2


@pytest.mark.exhaustive
def test_a_run_names_what_it_left_and_ends_it_before_it_ends_itself(start: Start) -> None:
    process = start("pass")
    run = Killed(process)
    out, _ = process.communicate()
    assert process.returncode == 0
    assert run.gone()
    told = [line for line in out.splitlines() if line.startswith("left behind by a test, and ended now: ")]
    assert {int(line.split(": ")[1].split()[0]) for line in told} == set(run.left)
    assert "1 passed" in out.splitlines()[-1]


def test_every_folder_below_tmp_is_named_so_that_it_is_swept() -> None:
    """But for PostgreSQL's, which is another user's and goes with the server, and those of programs run by hand."""
    tests = SUPPORT.parent
    made = re.compile(r"(?:mkdtemp|TemporaryDirectory)\((?!prefix=folder_prefix\(\)|dir=)")
    others = {"tests/support/postgres.py"}
    found = {
        path.relative_to(tests.parent).as_posix()
        for path in tests.rglob("*.py")
        if path.parts[-2] != "perf" and path.name != Path(__file__).name and made.search(path.read_text())
    }
    assert found == others
