"""`mxjob` that is forked: to its caller it is as the one that a shell starts."""

import contextlib
import os
import subprocess
from pathlib import Path

import forked_mxjob
import pytest
from cluster_fixtures import MXJOB
from seed_manifests import SEEDS
from waiting import SECONDS, eventually

MANIFEST = next(SEEDS.glob("000*/single.yaml"))
COMMANDS = [
    (("validate", "-"), MANIFEST.read_text()),
    (("validate", MANIFEST.name), None),
    (("nope",), None),
    (("get",), None),
]


@pytest.mark.parametrize(("arguments", "stdin"), COMMANDS, ids=lambda each: str(each)[:30])
def test_exit_code_and_texts_are_those_of_a_process_of_its_own(monkeypatch, arguments, stdin):
    monkeypatch.chdir(MANIFEST.parent)
    environment = {**os.environ, "KUBECONFIG": "of-this-test", "COLUMNS": "60"}
    given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    alone = subprocess.run([*MXJOB, *arguments], env=environment, capture_output=True, text=True, check=False, **given)
    forked = forked_mxjob.run(arguments, environment, stdin, SECONDS)
    assert (forked.returncode, forked.stdout, forked.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def processes():
    """What was forked and has not ended, and what it was forked from."""
    commands = (folder / "cmdline" for folder in Path("/proc").glob("[0-9]*"))
    with contextlib.suppress(OSError):
        return sum(forked_mxjob.__file__.encode() in command.read_bytes() for command in commands)
    return None


def test_one_that_does_not_end_in_time_is_killed(tmp_path):
    assert forked_mxjob.run(["--help"], os.environ, None, SECONDS).returncode == 0
    eventually(lambda: processes() == 1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(subprocess.TimeoutExpired):
        forked_mxjob.run(["validate", str(tmp_path / "pipe")], os.environ, None, 0.5)
    eventually(lambda: processes() == 1)
