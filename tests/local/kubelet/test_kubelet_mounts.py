"""A container's mounts are where its code looks for them, and for its processes alone."""

import marshal
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from kubelet_fixtures import make_pod, terminated

from mxnet_operator.local.kubelet import mounting
from mxnet_operator.local.kubelet.processes import Processes

CODE = """
import os, pathlib, pty
pty.openpty()
for path in ("/data of mine/x y/f", "/data/f", "data/f", "../data/f", os.path.expanduser("~/.mxnet/datasets/f")):
    print(path, pathlib.Path(path).read_text().strip())
for path in ("/data/new", "data/new", "/new"):
    try:
        pathlib.Path(path).write_text("new")
    except OSError as error:
        print(path, error.strerror)
pathlib.Path("/data of mine/x y/new").write_text("new")
pathlib.Path("/dev/termination-log").write_text("0.97")
pathlib.Path("/dev/null").write_text("nothing")
"""


def pod(tmp_path, command, paths, read_only=(), **container):
    """A pod that mounts folders with a file `f` in each, which has the folder's name."""
    volumes, found = [], []
    for index, (path, folder) in enumerate(paths.items()):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "f").write_text(f"{folder}\n")
        volumes.append({"name": f"v{index}", "hostPath": {"path": str(tmp_path / folder)}})
        found.append({"name": f"v{index}", "mountPath": path, "readOnly": path in read_only})
    return make_pod("reads", *command, container={"volumeMounts": found, **container}, volumes=volumes)


@pytest.fixture
def no_mounts(monkeypatch):
    async def why(_):
        return "a user namespace: operation not permitted"

    monkeypatch.setattr(Processes, "why_no_mounts", why)


async def test_paths_in_the_code_lead_to_the_volumes(node, tmp_path):
    (tmp_path / "image/data").mkdir(parents=True)
    (tmp_path / "image/data/f").write_text("of the image, and hidden")
    node.images.folder = tmp_path / "image"
    paths = {
        "/data": "a",
        "/data of mine/x y": "b b",
        "data": "a",
        "../data": "c",
        "~/.mxnet/datasets": "d",
    }
    await node.create(pod(tmp_path, ["python", "-c", CODE], paths, read_only=["/data", "data"]))
    ended = terminated(await node.ended("reads"))
    assert (await node.log("reads")).splitlines() == [
        "/data of mine/x y/f b b",
        "/data/f a",
        "data/f a",
        "../data/f c",
        next(line for line in (await node.log("reads")).splitlines() if line.endswith("datasets/f d")),
        "/data/new Read-only file system",
        "data/new Read-only file system",
        "/new Read-only file system",
    ]
    assert (ended["exitCode"], ended["message"]) == (0, "0.97")
    assert (tmp_path / "b b/new").read_text() == "new"
    assert not (tmp_path / "a/new").exists()
    assert not any(map(os.path.lexists, ("/data", "/data of mine", "/dev/termination-log", "/new")))


async def test_a_folder_may_hide_the_one_that_another_mount_is_of(node, tmp_path):
    outer = tmp_path / "outer"
    (outer / "inner").mkdir(parents=True)
    (outer / "inner/f").write_text("inner\n")
    paths = {str(outer): "hides", "/in": "outer/inner", f"{outer}/deep": "deep"}
    await node.create(pod(tmp_path, [f"cat {outer}/f /in/f {outer}/deep/f; yes | head -n 1"], paths))
    await node.ended("reads")
    assert await node.log("reads") == "hides\nouter/inner\ndeep\ny\n"  # a closed pipe ends a program, as ever


async def test_a_mount_that_would_hide_the_program_is_replaced_in_arguments(node, tmp_path):
    root = "/" + Path(sys.executable).parts[1]
    await node.create(pod(tmp_path, [f"cat {root}/f"], {root: "a"}))
    await node.ended("reads")
    notice, said = (await node.log("reads")).splitlines()
    assert said == "a"
    assert notice.startswith(f"mxjob: {root}: not mounted, only replaced in arguments and variables")


@pytest.mark.usefixtures("no_mounts")
async def test_where_no_user_may_mount_paths_are_replaced_in_arguments_and_variables(node, tmp_path):
    paths = {"/data": "it's a", "../data": "b", "~/c": "c"}
    variable = {"name": "FILE", "value": "/data/f"}
    await node.create(pod(tmp_path, ["cat /data/f ../data/f ~/c/f $FILE"], paths, env=[variable]))
    await node.ended("reads")
    notice, *said = (await node.log("reads")).splitlines()
    assert said == ["it's a", "b", "c", "it's a"]
    assert notice == (
        "mxjob: /data: not mounted, only replaced in arguments and variables, not in the script's code"
        " (a user namespace: operation not permitted)"
    )


@pytest.mark.parametrize("path", ["..", "../workspace", "../../../../../x", "~/", "../termination-log"])
async def test_a_relative_path_that_leads_elsewhere_is_refused(node, tmp_path, path):
    await node.create(pod(tmp_path, ["true"], {path: "a"}))
    assert f"mount path {path} " in (await node.event("reads", "Failed"))["message"]


def test_a_user_without_rights_has_them_in_a_namespace_of_its_own():
    """And stays the user that it is; in folders that it can write, and in others."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if os.geteuid() != 0 or python is None:
        pytest.skip("needs root, to become another user, and a Python of the system's")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o777)
        for each in "data", "scratch":
            (folder / each).mkdir()
            (folder / each).chmod(0o777)
        (folder / "data/f").write_text("here\n")
        program = folder / "mounting.py"
        program.write_text(Path(mounting.__file__).read_text())
        inside = ["/data/of it", "/usr/none/x", f"{folder}/made/y", "/data"]
        reading, writing = os.pipe()
        plan = {
            "mounts": [[each, str(folder / "data"), False] for each in inside],
            "scratch": str(folder / "scratch"),
            "folder": "/data",
            "variables": {"LC_ALL": "C"},
            "status": writing,
        }
        script = "id -u; cat '/data/of it/f' /usr/none/x/f $0/made/y/f f; ls -d /usr/bin; touch /usr/none/z /z; echo $$"
        script += "; grep SigIgn /proc/$$/status"
        with subprocess.Popen(
            [python, "-I", "-S", program, marshal.dumps(plan).hex(), "sh", "-c", script, folder],
            user=65534,
            group=65534,
            extra_groups=[],
            pass_fds=[writing],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            os.close(writing)
            said = process.communicate()[0].splitlines()
        assert os.read(reading, 100) == b""
        os.close(reading)
        ignored = int(said.pop().removeprefix("SigIgn:"), 16)
        assert said == ["65534", *["here"] * 4, "/usr/bin", str(process.pid)]
        assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)  # others are this process's own
    assert not any(map(os.path.lexists, ("/data", "/usr/none", "/z")))
