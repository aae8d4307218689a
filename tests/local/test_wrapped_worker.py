"""The command that the controller gives workers on a cluster, run as it is, with real MXNet in a gang."""

import contextlib
import subprocess

import pytest
from builders import make_mxjob
from left_overs import mark
from waiting import SECONDS

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod
from mxnet_operator.builders.fail_fast import DATA, MOUNT_PATH
from mxnet_operator.local.claims import claim_subnet

pytestmark = pytest.mark.exhaustive

SCRIPT = """
import sys
import mxnet as mx

kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros((2,)))
kv.push("w", mx.nd.ones((2,)))
out = mx.nd.zeros((2,))
kv.pull("w", out=out)
out.wait_to_read()
print("pulled", flush=True)
if sys.argv[1] == "fail":
    raise ValueError("boom")
sys.stdin.read()
"""


@pytest.fixture
def gang(tmp_path, mxnet_python):
    """Starts a scheduler, a server and two workers as their pods would be; what is left at the end is killed."""
    for name, text in DATA.items():
        (tmp_path / name).write_text(text)
    command = [str(mxnet_python), "-c", SCRIPT]
    builder = make_mxjob().scheduler(command=command).server(command=command).worker(2, command=command)
    job = with_defaults(builder.obj())
    with contextlib.ExitStack() as processes:
        subnet, claim = claim_subnet(tmp_path)  # Another run on this machine starts the same gang.
        processes.enter_context(claim)

        def start(replica_type, index, host, *arguments):
            (container,) = build_pod(job, replica_type, index, 0, has_hook=True)["spec"]["containers"]
            # A process on this machine has neither the pod's mount nor its names.
            words = [word.replace(MOUNT_PATH, str(tmp_path)) for word in container["command"]]
            variables = {each["name"]: each["value"] for each in container["env"]} | {
                **mark(),
                "DMLC_PS_ROOT_URI": f"{subnet}.1.1",
                "DMLC_NODE_HOST": f"{subnet}.1.{host}",
                "DMLC_USE_KUBERNETES": "0",
                "OMP_NUM_THREADS": "1",
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(tmp_path / "of-the-image"),
            }
            pipe = subprocess.PIPE
            process = subprocess.Popen(
                [*words, *arguments], env=variables, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path
            )
            processes.callback(process.communicate)
            processes.callback(process.kill)
            return process

        yield start


def test_a_worker_that_raises_ends_with_its_exit_code_and_traceback_while_its_gang_waits(gang):
    start = gang
    others = [
        start("Scheduler", 0, 1),
        start("Server", 0, 2),
        start("Worker", 1, 4, "wait"),
    ]
    failing = start("Worker", 0, 3, "fail")
    _, err = failing.communicate(timeout=SECONDS)
    assert (failing.returncode, b"ValueError: boom" in err) == (1, True), err.decode()
    assert [process.poll() for process in others] == [None] * 3
