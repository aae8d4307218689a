"""The hook that makes a failing MXNet worker end; tests/local/test_failure_matrix.py has it with real MXNet."""

import shutil
import subprocess
import sys

import pytest
from kubelet_fixtures import make_pod, running_node, terminated
from waiting import SECONDS

from mxnet_operator.builders.fail_fast import HOOK
from mxnet_operator.kube.resources import SERVICES
from mxnet_operator.local.images.store import BASE_IMAGE

SCRIPT = """
import mxnet as mx

kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros((2,)))
kv.push("w", mx.nd.ones((2,)))
out = mx.nd.zeros((2,))
kv.pull("w", out=out)
out.wait_to_read()
print("pulled", out.asnumpy().tolist(), flush=True)
mx.metric.register(type("Own", (mx.metric.EvalMetric,), {"k": lambda self: kv}))
"""


@pytest.fixture
async def mxnet_node(tmp_path, image_store, mxnet_python):
    async with running_node(tmp_path, images=image_store) as started:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "gang"},
            "spec": {"clusterIP": "None", "selector": {"job": "gang"}},
        }
        await started.client.create(SERVICES.path("default"), service)
        yield started


async def test_a_script_whose_globals_mxnet_keeps_ends_as_it_should(mxnet_node):
    """By itself its KVStore outlives the interpreter, and a thread of it aborts the finished training with 134."""
    gang = (("scheduler", 0), ("server", 0), ("worker", 0), ("worker", 1))
    for role, index in gang:
        env = {
            "DMLC_ROLE": role,
            "DMLC_PS_ROOT_URI": "scheduler-0.gang",
            "DMLC_PS_ROOT_PORT": "9091",
            "DMLC_NUM_SERVER": "1",
            "DMLC_NUM_WORKER": "2",
            "DMLC_USE_KUBERNETES": "1",
        }
        name, container = f"{role}-{index}", {"image": BASE_IMAGE}
        command = ["python", "-c", SCRIPT]
        pod = make_pod(name, *command, env=env, container=container, labels={"job": "gang"}, subdomain="gang")
        await mxnet_node.create(pod)
    for role, index in gang:
        assert terminated(await mxnet_node.ended(f"{role}-{index}"))["exitCode"] == 0
    assert await mxnet_node.log("worker-1") == "pulled [2.0, 2.0]\n"


# Without MXNet: a module of that name is all that the hook looks for.


def run(tmp_path, script, path="", hook=HOOK, **env):
    (tmp_path / "mxnet.py").touch()
    return subprocess.run(
        [sys.executable, "-c", script],
        env={"DMLC_ROLE": "worker", "PYTHONPATH": f"{hook}:{path}:{tmp_path}", **env},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_the_sitecustomize_of_the_image_runs_as_well(tmp_path):
    image = tmp_path / "image"
    image.mkdir()
    (image / "sitecustomize.py").write_text("import builtins; builtins.from_image = 7")
    assert run(tmp_path, "print(from_image)", path=str(image)).stdout == "7\n"


def test_a_sitecustomize_of_the_image_that_fails_is_reported_and_not_fatal(tmp_path):
    image = tmp_path / "image"
    image.mkdir()
    (image / "sitecustomize.py").write_text("1/0")
    result = run(tmp_path, "print('fine')", path=str(image))
    assert (result.stdout, result.returncode) == ("fine\n", 0)
    assert "ZeroDivisionError" in result.stderr


def test_the_scripts_own_clean_up_runs_before_a_failing_worker_leaves(tmp_path):
    script = "import atexit, mxnet; atexit.register(lambda: print('clean')); print('out', end=''); raise SystemExit(4)"
    result = run(tmp_path, script)
    assert (result.stdout, result.returncode) == ("outclean\n", 4)


def test_a_caught_exit_and_an_exit_with_zero_are_left_alone(tmp_path):
    script = "import sys, mxnet\ntry: sys.exit(3)\nexcept SystemExit as e: print(e.code)\nsys.exit(0)"
    result = run(tmp_path, script)
    assert (result.stdout, result.returncode) == ("3\n", 0)


def test_a_replaced_excepthook_does_not_hide_the_failure(tmp_path):
    script = "import sys, mxnet, threading\nsys.excepthook = lambda *a: print('mine')\nraise ValueError"
    result = run(tmp_path, script)
    assert (result.stdout, result.returncode) == ("mine\n", 1)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("raise KeyboardInterrupt", 130),
        ("import no_such_module", 1),
        ("sys.stderr = open(os.devnull, 'w', encoding='ascii'); sys.exit('größe')", 1),
    ],
)
def test_a_worker_leaves_whatever_it_has_done_to_its_files_and_exceptions(tmp_path, fault, code):
    # As the exit barrier does: what comes to the interpreter's own end doesn't end as it should.
    barrier = "import mxnet, os, sys, threading; threading._shutdown = lambda: os._exit(99)"
    assert run(tmp_path, f"{barrier}; {fault}").returncode == code


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("blocked", "code"),
    [
        ("threading.Event().wait", 138),
        ("ctypes.PyDLL(None).pause", 1),  # nothing else of Python runs any more
    ],
)
def test_a_clean_up_that_blocks_is_given_up(tmp_path, blocked, code):
    impatient = shutil.copytree(HOOK, tmp_path / "impatient")
    text = (HOOK / "sitecustomize.py").read_text()
    text = text.replace("UP_SECONDS = 9", "UP_SECONDS = 0.1").replace("RESORT_SECONDS = 10", "RESORT_SECONDS = 1")
    (impatient / "sitecustomize.py").write_text(text)
    imports = "import atexit, ctypes, mxnet, sys, threading"
    script = f"{imports}; atexit.register({blocked}); print('out', end=''); sys.exit(138)"
    result = run(tmp_path, script, hook=impatient)
    assert result.returncode == code
    assert "most recent call first" in result.stderr
    assert (result.stdout == "out") == (code == 138)
