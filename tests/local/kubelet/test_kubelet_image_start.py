"""What runs in a container, and where, when its template leaves that to the image."""

import pytest
from kubelet_fixtures import make_pod, running_node, terminated

from mxnet_operator.local.images.folder import Start

SAY = ["sh", "-c", 'pwd; echo "$@"', "sh"]


@pytest.fixture
async def node(tmp_path):
    folder = tmp_path / "image"
    (folder / "inner").mkdir(parents=True)
    (folder / "data.txt").write_text("data\n")
    async with running_node(tmp_path) as started:
        started.images.folder = folder
        started.images.start = Start("/app", tuple(SAY), ("by", "default"))
        yield started


async def said(node, name, **container):
    pod = make_pod(name, "x", container=container)
    if "command" not in container:
        del pod["spec"]["containers"][0]["command"]
    await node.create(pod)
    assert terminated(await node.ended(name))["exitCode"] == 0
    return (await node.log(name)).splitlines()


async def test_a_command_and_args_replace_the_image_s_as_in_kubernetes(node):
    _, nothing = await said(node, "nothing")
    assert nothing == "by default"
    _, args = await said(node, "args", args=["mine"])
    assert args == "mine"
    assert await said(node, "command", command=["echo", "alone"]) == ["alone"]


async def test_the_image_s_files_lie_in_its_working_directory_also_where_the_template_names_another(node):
    read = {"command": ["sh", "-c"], "args": ["pwd; cat /app/data.txt"]}
    assert await said(node, "there", **read) == ["/app", "data"]
    assert await said(node, "inner", **read, workingDir="/app/inner") == ["/app/inner", "data"]
    assert await said(node, "elsewhere", **read, workingDir="/other") == ["/other", "data"]


async def test_the_root_as_working_directory_is_the_container_s_own_folder(node):
    node.images.start = Start("/")
    read = {"command": ["sh", "-c"], "args": ["pwd; cat data.txt"]}
    where, what = await said(node, "there", **read)
    assert (where.rpartition("/")[2], what) == ("workspace", "data")
    where, what = await said(node, "asked", **read, workingDir="/")
    assert (where.rpartition("/")[2], what) == ("workspace", "data")


@pytest.mark.parametrize("folder", ["../..", "..", "a/../../..", "/data/../../../..", "/other/../.."])
async def test_no_working_directory_leads_out_of_the_container(node, folder):
    volume = {"volumes": [{"name": "data", "emptyDir": {}}]}
    mounted = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    await node.run("a", "sh", "-c", "pwd", container={"workingDir": folder, **mounted}, **volume)
    assert (await node.log("a")).strip().endswith("/workspace")


async def test_the_loader_finds_the_image_s_libraries_unless_the_template_says_otherwise(node):
    read = {"command": ["sh", "-c", "echo [$LD_LIBRARY_PATH]"]}
    assert await said(node, "none", **read) == ["[]"]
    node.images.library_path = "/venv/nvidia/cudnn/lib:/venv/nvidia/nccl/lib"
    assert await said(node, "some", **read) == ["[/venv/nvidia/cudnn/lib:/venv/nvidia/nccl/lib]"]
    assert await said(node, "own", **read, env=[{"name": "LD_LIBRARY_PATH", "value": "/mine"}]) == ["[/mine]"]
