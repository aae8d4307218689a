"""Nothing that the kubelet started outlives what it was started for."""

import asyncio
import os
import select
import signal
import sys
from pathlib import Path

from kubelet_fixtures import make_pod, running_node, terminated
from waiting import SECONDS

from mxnet_operator.local.kubelet.processes import Processes
from mxnet_operator.local.kubelet.reaper import CLUSTER_MARKER, REAPER_MARKER, kill_marked, marked

IGNORING = "trap 'echo got TERM' TERM; echo ready; while :; do sleep 1000; done"
STRAYING = "setsid sleep 1000 & echo ready; wait"


async def test_a_deleted_pod_is_asked_to_end_first(node):
    await node.create(
        make_pod("polite", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 1000 & wait; done")
    )
    await node.until_log("polite", "ready")
    following = asyncio.create_task(node.until_log("polite", "bye"))
    await node.delete("polite")
    await node.gone("polite")
    assert "bye" in await following
    assert node.processes() == []


async def test_a_pod_that_ignores_the_request_is_killed_after_its_grace_period(node):
    await node.create(make_pod("stubborn", IGNORING))
    await node.until_log("stubborn", "ready")
    await node.delete("stubborn", grace=1)
    await node.gone("stubborn")
    assert node.processes() == []


async def test_a_pod_deleted_by_force_is_killed_although_the_api_has_it_no_more(node):
    await node.create(make_pod("forced", IGNORING))
    await node.until_log("forced", "ready")
    process = node.processes()[0]
    descriptor = os.pidfd_open(process)
    await node.delete("forced", grace=0)
    await readable(descriptor)


async def test_a_process_that_left_its_group_dies_with_its_container(node):
    await node.create(make_pod("straying", STRAYING))
    await node.until_log("straying", "ready")
    await node.delete("straying", grace=0)
    await node.gone("straying")
    await node.stop()
    assert node.processes() == []


async def test_what_a_program_left_running_dies_when_it_ends(node):
    pod = await node.run("leaver", "setsid sleep 1000 & sleep 1000 & exit 0")
    assert terminated(pod)["exitCode"] == 0
    assert node.processes() == []


async def test_the_folder_of_a_pod_goes_with_it(node):
    pod = await node.run("tidy", "touch file")
    folder = node.folder / pod["metadata"]["uid"]
    assert (folder / "containers/main/workspace/file").exists()
    await node.delete("tidy")
    await node.run("next", "true")
    await node.stop()
    assert not folder.exists()


async def test_stopping_the_kubelet_ends_every_process(tmp_path):
    async with running_node(tmp_path) as node:
        for index in range(3):
            await node.create(make_pod(f"pod-{index}", STRAYING))
            await node.until_log(f"pod-{index}", "ready")
        assert len(node.processes()) >= 6
        await node.stop()
        assert node.processes() == []


HOLDER = """
import asyncio, pathlib, sys
from mxnet_operator.local.kubelet.processes import Processes

async def main():
    processes = Processes(sys.argv[1])
    await processes.start()
    script = "setsid sleep 1000 & env -i sleep 1000 & echo up; wait"
    process = processes.spawn(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, pathlib.Path("/"), "a/b")
    await process.wait(lambda data: (sys.stdout.buffer.write(data), sys.stdout.flush()), 1)

asyncio.run(main())
"""


async def start_holder(cluster_id):
    """A process that runs a container as the kubelet does; it has started when this returns."""
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, cluster_id, stdout=asyncio.subprocess.PIPE, env=dict(os.environ)
    )
    assert await holder.stdout.readline() == b"up\n"
    return holder


async def test_the_reaper_kills_everything_when_the_kubelet_is_killed():
    holder = await start_holder("reaped")
    children = children_of(holder.pid)  # the shell and the reaper
    async with asyncio.timeout(SECONDS):
        while len(marked(CLUSTER_MARKER, "reaped")) < 2:  # noqa: ASYNC110 - the shell's child tells nobody it is there
            await asyncio.sleep(0.01)
    descriptors = [os.pidfd_open(each) for each in {*marked(CLUSTER_MARKER, "reaped"), *children}]
    os.kill(holder.pid, signal.SIGKILL)
    await holder.wait()
    for descriptor in descriptors:
        await readable(descriptor)
    assert marked(CLUSTER_MARKER, "reaped") == []


async def test_the_reaper_ignores_what_is_meant_for_the_foreground():
    holder = await start_holder("interrupted")
    reaper = next(each for each in children_of(holder.pid) if each not in marked(CLUSTER_MARKER, "interrupted"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(reaper, number)
    os.kill(holder.pid, signal.SIGKILL)
    await holder.wait()
    await readable(os.pidfd_open(reaper))
    assert marked(CLUSTER_MARKER, "interrupted") == []


async def test_a_new_life_begins_by_killing_what_the_last_one_left():
    left = await asyncio.create_subprocess_exec("sleep", "1000", env={CLUSTER_MARKER: "left"})
    processes = Processes("left")
    await processes.start()
    assert await left.wait() == -signal.SIGKILL
    await processes.stop()


async def test_a_new_life_waits_for_the_reaper_of_the_last_one():
    holder = await start_holder("again")
    (reaper,) = marked(REAPER_MARKER, "again")
    ended = os.pidfd_open(reaper)
    os.kill(holder.pid, signal.SIGKILL)
    await holder.wait()
    processes = Processes("again")
    await processes.start()
    assert select.select([ended], [], [], 0)[0] == [ended]
    await processes.stop()


async def test_another_cluster_is_left_alone():
    other = await asyncio.create_subprocess_exec("sleep", "1000", env={CLUSTER_MARKER: "other"})
    try:
        assert kill_marked(CLUSTER_MARKER, "mine")
        assert other.returncode is None
        assert marked(CLUSTER_MARKER, "other") == [other.pid]
    finally:
        other.kill()
        await other.wait()


async def readable(descriptor):
    """Wait for a process to end, by its pidfd."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(SECONDS):
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def children_of(process):
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
