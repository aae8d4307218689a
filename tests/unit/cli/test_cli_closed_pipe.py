"""A reader that goes away, as in `mxjob get | head -1`: silence, and the exit code of what SIGPIPE ends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import make_mxjob
from controller_fixtures import submitted
from hostile_api import HostileApi, hostile_job
from waiting import SECONDS

from mxnet_operator.cli.errors import Exit

GOOD = submitted(make_mxjob("digits").worker(image="i"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HostileApi, Path, Path]]:
    folder = tmp_path_factory.mktemp("api")
    (folder / "good.yaml").write_text(json.dumps(GOOD))
    api = HostileApi(folder)
    api.job = hostile_job(state="Succeeded")
    api.log = b"a line\n" * 50_000
    with api.serving() as kubeconfig:
        yield api, kubeconfig, folder


def ended(served: tuple[HostileApi, Path, Path], words: list[str], *, stderr_too: bool = False) -> tuple[int, str]:
    """The exit code, and what was said on stderr, of a command whose reader has gone before it begins."""
    _, kubeconfig, folder = served
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "mxnet_operator.cli.mxjob", *words],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            cwd=folder,
            stdout=writing,
            stderr=writing if stderr_too else subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    finally:
        os.close(writing)
    return done.returncode, (done.stderr or b"").decode()


COMMANDS = [
    ["get"],
    ["get", "-o", "json"],
    ["get", "--watch"],
    ["describe", "digits"],
    ["logs", "digits"],
    ["logs", "-f", "digits"],
    ["validate", "good.yaml"],
    ["convert", "good.yaml"],
]


@pytest.mark.sampled
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_ends_in_silence_as_what_sigpipe_ends(
    served: tuple[HostileApi, Path, Path], words: list[str]
) -> None:
    assert ended(served, words) == (Exit.CLOSED_PIPE, "")


def test_following_the_log_of_a_running_job_ends_with_its_reader(served: tuple[HostileApi, Path, Path]) -> None:
    api, *_ = served
    api.job = hostile_job(state="Running")
    try:
        assert ended(served, ["logs", "-f", "digits"]) == (Exit.CLOSED_PIPE, "")
    finally:
        api.job = hostile_job(state="Succeeded")


@pytest.mark.sampled
@pytest.mark.parametrize("stderr_too", [False, True], ids=["stdout", "both"])
@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_a_run_goes_on_and_ends_as_its_job_does(
    served: tuple[HostileApi, Path, Path], state: str, stderr_too: bool
) -> None:
    served[0].job = hostile_job(state=state)
    try:
        code, said = ended(served, ["run", "-f", "good.yaml"], stderr_too=stderr_too)
    finally:
        served[0].job = hostile_job(state="Succeeded")
    assert code == (Exit.OK if state == "Succeeded" else Exit.FAILED)
    assert "Traceback" not in said


@pytest.mark.sampled
@pytest.mark.parametrize("words", [["delete", "other"], ["get", "--nonsense"]], ids=" ".join)
def test_an_error_that_nobody_reads_is_silent(served: tuple[HostileApi, Path, Path], words: list[str]) -> None:
    assert ended(served, words, stderr_too=True) == (Exit.CLOSED_PIPE, "")


@pytest.mark.sampled
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("command", ["get", "logs -f digits", "run -f good.yaml"])
def test_a_command_runs_with_closed_streams(served: tuple[HostileApi, Path, Path], command: str, closed: str) -> None:
    _, kubeconfig, folder = served
    program = f"exec {sys.executable} -P -m mxnet_operator.cli.mxjob {command} {closed}"
    done = subprocess.run(
        ["sh", "-c", program],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        cwd=folder,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (Exit.OK, False), done.stderr


def test_a_full_disk_is_said(served: tuple[HostileApi, Path, Path]) -> None:
    _, kubeconfig, folder = served
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "mxnet_operator.cli.mxjob", "get"],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr == b"error: the output can't be written: No space left on device\n"


@pytest.mark.sampled
@pytest.mark.parametrize("program", ["mxjob", "mxnet-operator"])
def test_an_interrupt_while_a_program_is_imported_is_silent(tmp_path: Path, program: str) -> None:
    interrupted = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    (tmp_path / "typer.py").write_text(interrupted)  # is imported in place of the library
    done = subprocess.run(
        [Path(sys.executable).with_name(program), "--help"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (Exit.INTERRUPTED, b"", b"")
