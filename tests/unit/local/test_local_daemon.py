"""`mxjob local up` beside another cluster of the same home that is starting, stopping or ready."""

import contextlib
import functools
import os

import msgspec
import pytest
import typer

from mxnet_operator.cli.daemons import local_cluster
from mxnet_operator.local import daemon
from mxnet_operator.local.claims import AlreadyRunningError, HomeLock
from mxnet_operator.local.cluster import ClusterOptions
from mxnet_operator.local.home import ClusterState, installation, make_cluster_folder, running_state, write_state
from mxnet_operator.plan import Policy

OURS = ClusterState(pid=1, started_at=0.0, port=1, subnet="127.99")


class Other:
    """Another cluster of this home, in this process; `turns` are what becomes of it, one at each look."""

    def __init__(self, home, *turns):
        self.files = make_cluster_folder(home)
        self.lock = contextlib.ExitStack()
        self.turns = list(turns)
        self.started = 0

    def state(self, *, stopping):
        write_state(self.files, msgspec.structs.replace(OURS, pid=os.getpid(), stopping=stopping))

    def starts(self):
        self.lock.enter_context(contextlib.closing(HomeLock(self.files.lock)))

    def is_ready(self):
        self.state(stopping=False)

    def stops(self):
        self.state(stopping=True)

    def has_ended(self):
        self.lock.close()

    def waits(self):
        pass

    def look(self, _seconds):
        getattr(self, self.turns.pop(0) if self.turns else "waits")()

    def start(self, _files, _command, _on_step):
        self.started += 1
        if self.turns and self.turns[0] == "starts":
            self.look(0)
            raise daemon.StartFailedError(1, "another was faster")
        return OURS


def detached(home, other, monkeypatch):
    monkeypatch.setattr(daemon, "_start", other.start)
    with other.lock:
        return daemon.start_detached(home, ["none"], lambda _: None, sleep=other.look)


@pytest.fixture
def home(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path / "home"


@pytest.mark.parametrize("turns", [["has_ended"], ["waits", "waits", "has_ended"]])
def test_one_that_is_stopping_is_waited_for_and_then_a_new_one_is_started(home, monkeypatch, turns):
    other = Other(home, *turns)
    other.starts()
    other.stops()
    assert running_state(other.files) is None
    assert detached(home, other, monkeypatch) is OURS
    assert other.started == 1


@pytest.mark.parametrize("turns", [["is_ready"], ["waits", "is_ready"]])
def test_one_that_is_starting_is_waited_for_and_then_said_to_run(home, monkeypatch, turns):
    other = Other(home, *turns)
    other.starts()
    with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()}"):
        detached(home, other, monkeypatch)
    assert not other.started
    assert not other.turns


def test_one_whose_start_fails_is_followed_by_ours(home, monkeypatch):
    other = Other(home, "waits", "has_ended")
    other.starts()
    assert detached(home, other, monkeypatch) is OURS


def test_one_that_was_faster_is_waited_for(home, monkeypatch):
    other = Other(home, "starts", "waits", "is_ready")
    with pytest.raises(AlreadyRunningError):
        detached(home, other, monkeypatch)
    assert other.started == 1


def test_one_that_neither_ends_nor_becomes_ready_is_not_waited_for_without_end(home, monkeypatch):
    other = Other(home)
    other.starts()
    with pytest.raises(daemon.BusyError, match="has been starting or stopping for 60 s"):
        detached(home, other, monkeypatch)
    assert not other.started


def test_one_that_is_stopping_is_waited_for_in_the_foreground_as_well(home, monkeypatch):
    monkeypatch.setenv("MXJOB_HOME", str(home))
    other, steps = Other(home, "waits", "has_ended"), []
    other.starts()
    other.stops()

    async def run(_home, _options, _make, *, on_step, on_ready, stop):
        steps.append("ours runs")

    monkeypatch.setattr(local_cluster, "run_cluster", run)
    sleep = lambda seconds: (steps.append("looks"), other.look(seconds))  # noqa: E731
    monkeypatch.setattr(daemon, "wait_for_other", functools.partial(daemon.wait_for_other, sleep=sleep))
    with other.lock, pytest.raises(typer.Exit) as ended:
        local_cluster.in_foreground(ClusterOptions(), Policy())
    assert (ended.value.exit_code, steps) == (0, ["looks", "looks", "ours runs"])


def test_one_that_is_ready_is_left_as_it_is(home, monkeypatch):
    other = Other(home)
    other.starts()
    other.is_ready()
    with pytest.raises(AlreadyRunningError):
        detached(home, other, monkeypatch)
    assert not other.started


def test_a_cluster_from_before_an_upgrade_is_left_and_said(home, monkeypatch, capsys):
    monkeypatch.setenv("MXJOB_HOME", str(home))
    other = Other(home)
    other.starts()
    with other.lock:
        for of, says in (("", True), (installation(), False)):
            write_state(other.files, msgspec.structs.replace(OURS, pid=os.getpid(), installation=of))
            local_cluster.ensure_running()
            assert ("mxjob local down" in capsys.readouterr().err) is says, of
    assert len(installation()) == 64
