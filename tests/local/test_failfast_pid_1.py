"""The fail-fast hook where Python is process 1, as in a container: SIGTERM ends it, and the rest is as it was."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from left_overs import mark
from program_processes import held_port
from waiting import SECONDS

from mxnet_operator.builders.fail_fast import HOOK

NAMESPACE = ["unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "--pid", "--fork"]
WAIT = "import threading; print('up', flush=True); threading.Event().wait()"


@pytest.fixture(scope="module", autouse=True)
def namespaces():
    """Skips where the machine allows no process namespaces."""
    tried = subprocess.run([*NAMESPACE, "sh", "-c", "echo $$"], capture_output=True, text=True, check=False)
    if tried.stdout != "1\n":
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no process namespaces: {tried.stderr}")


@contextlib.contextmanager
def first_process(python: Path | str, script: str, **env: str) -> Iterator["subprocess.Popen[str]"]:
    """A script as process 1 of a namespace, with the hook, once it has said `up`: the process that waits for it."""
    command = [*NAMESPACE, "--kill-child", str(python), "-u", "-c", script]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOOK), "DMLC_ROLE": "worker", **mark(), **env}
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


def terminate(process: "subprocess.Popen[str]") -> None:
    """Send SIGTERM to process 1 of the namespace, as a container runtime does."""
    (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(first), signal.SIGTERM)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """The exit code and what was written since."""
    assert process.stdout
    return process.wait(SECONDS), process.stdout.read()


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["scheduler", "server", "worker"])
def test_a_blocked_mxnet_process_ends_on_sigterm(mxnet_python, role):
    # MXNet loads its library, and then the others of the gang never come.
    script = "print('up'); import mxnet; mxnet.kv.create('dist_sync')"
    gang = {"DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_NUM_SERVER": "1", "DMLC_NUM_WORKER": "1", "PS_VERBOSE": "1"}
    with (
        held_port() as port,
        first_process(
            mxnet_python, script, DMLC_ROLE=role, DMLC_PS_ROOT_PORT=str(port.getsockname()[1]), **gang
        ) as process,
    ):
        assert any("Bind to" in line for line in process.stdout), "it never got as far as ps-lite"
        terminate(process)
        assert ended(process)[0] == 143


def test_the_scripts_own_handler_of_sigterm_is_called():
    script = f"import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit('saved')); {WAIT}"
    with first_process(sys.executable, script) as process:
        terminate(process)
        assert ended(process) == (1, "saved\n")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("fault", "code"), [("raise SystemExit(3)", 3), ("os.kill(os.getpid(), 9)", 137), ("os.abort()", 134), ("pass", 0)]
)
def test_the_exit_code_is_the_scripts(fault, code):
    with first_process(sys.executable, f"import os; print('up', flush=True); {fault}") as process:
        assert ended(process)[0] == code


def test_switched_off_the_script_stays_process_1():
    with first_process(sys.executable, "import os; print('up'); print(os.getpid())", MXJOB_FAILFAST="off") as process:
        assert ended(process) == (0, "1\n")
