"""A kubelet that begins where an earlier one was cut off."""

import asyncio
import json
import os
import select
import time
import uuid

from api_outage import Outage
from apiserver_fixtures import running_server
from kubeconfigs import write_kubeconfig
from kubelet_fixtures import make_pod, running_kubelet, running_node, terminated
from waiting import until


async def test_folders_of_pods_that_no_longer_exist_are_removed_at_the_start(tmp_path):
    folder = tmp_path / "pods" / str(uuid.uuid4())
    (folder / "logs").mkdir(parents=True)
    other = tmp_path / "pods" / "notes"
    other.mkdir()
    async with running_node(tmp_path) as node:
        await node.run("first", "true")
        await until(lambda: not folder.exists())
        assert other.exists()


async def test_what_a_pod_wrote_outlives_its_cluster_for_a_week(tmp_path):
    async with running_node(tmp_path) as node:
        pod = await node.run("writer", "echo weights > model.params")
    container = tmp_path / "pods" / pod["metadata"]["uid"] / "containers/main"
    for days, is_kept in ((6, True), (8, False)):
        record = json.loads((container / "paths.json").read_text())
        record["written_at"] = time.time_ns() - days * 24 * 3600 * 10**9
        (container / "paths.json").write_text(json.dumps(record))
        async with running_node(tmp_path) as node:
            await node.run("first", "true")
            if not is_kept:  # the sweep goes on beside the pods, and ends with the kubelet
                await until(lambda: not container.exists())
        assert (container / "workspace/model.params").exists() is is_kept


async def test_pods_run_on_while_the_api_server_is_away_and_their_end_is_told_when_it_is_back(tmp_path):
    async with running_server(tmp_path) as server, Outage(f"https://127.0.0.1:{server.port}").served() as front:
        kubeconfig = tmp_path / "kubeconfig-by-front"
        write_kubeconfig(kubeconfig, front.url, server.token, server.certificate)
        async with running_kubelet(server, tmp_path, kubeconfig=kubeconfig) as node:
            await node.create(make_pod("steady", "mkfifo pipe; echo ready; read line < pipe; exit 5"))
            pod = await node.running("steady")
            await node.until_log("steady", "ready")
            [process] = node.processes()
            ended = os.pidfd_open(process)
            await front.go()
            pipe = node.folder / pod["metadata"]["uid"] / "containers/main/workspace/pipe"
            await asyncio.to_thread(pipe.write_text, "go\n")
            await asyncio.to_thread(select.select, [ended], [], [], 20)
            os.close(ended)
            assert (await node.get("steady"))["status"]["phase"] == "Running"
            await front.come_back()
            assert terminated(await node.ended("steady"))["exitCode"] == 5
