"""What the triggers of 200 deferred tasks cost by themselves: on one event loop, as in a triggerer, for a minute.

    make bench            (or: python tests/perf/bench_deferred.py --jobs 200 --seconds 60 --poll-interval 10)

The API server is our own, in a process of its own; its jobs run, and each worker writes a log line every two seconds.
Airflow's own share of a triggerer (its database, heartbeats, log files) is not measured: bench_triggerer.py has it all.
Blocks of the loop are given as time on the clock, which other programs lengthen, and as this thread's processor time,
which is ours alone, with and without Python's garbage collector.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import airflow_home  # noqa: F401 - before anything imports Airflow
from apiserver_fixtures import running_server
from process_cost import count_requests

from mxnet_operator.api import names
from mxnet_operator.local.apiserver.logs import LogRequest

STARTED = time.time()


class GrowingLogs:
    """The log of a worker that writes an epoch's figure every two seconds."""

    async def open(self, pod_uid: str, request: LogRequest) -> Any:
        first = request.since.timestamp() if request.since else STARTED
        at = max(first, STARTED)
        while at <= time.time():
            stamp = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            epoch = int(at - STARTED) // 2
            yield f"{stamp}.000000001Z INFO:root:Epoch[{epoch}] Validation-accuracy=0.91\n".encode()
            at += 2


async def serve(jobs: int, folder: Path, channel: Any) -> None:
    """Be the API server, with so many running jobs.

    Sends their uids, and when it hears `stop`, how often it was asked since it began, or heard `count`.
    """
    async with running_server(folder, log_source=GrowingLogs()) as running:
        uids = [await running_job(running.api, f"job-{number}") for number in range(jobs)]
        asked = count_requests(running.server)
        channel.send((str(running.kubeconfig), uids))
        while await asyncio.to_thread(channel.recv) == "count":
            asked.clear()
        channel.send(dict(asked))


async def running_job(api: Any, name: str) -> str:
    """Create a job whose only pod runs; returns its uid."""
    path = "/apis/kubeflow.org/v1/namespaces/default/mxjobs"
    container = {"name": names.CONTAINER, "image": "i"}
    template = {"spec": {"containers": [container]}}
    spec = {"jobMode": "MXTrain", "mxReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}
    manifest = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name}, "spec": spec}
    job = (await api.post(path, manifest)).ok()
    uid: str = job["metadata"]["uid"]
    (await api.merge(f"{path}/{name}/status", {"status": {"state": "Running", "conditions": []}})).ok()
    labels = {names.LABEL_JOB_NAME: name, names.LABEL_REPLICA_TYPE: "worker", names.LABEL_REPLICA_INDEX: "0"}
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": name, "uid": uid, "controller": True}
    pod = {
        "metadata": {"name": f"{name}-worker-0", "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": "n", "containers": [container]},
    }
    (await api.post("/api/v1/namespaces/default/pods", pod)).ok()
    state = {"running": {"startedAt": "2026-11-21T12:00:00Z"}}
    status = {"name": names.CONTAINER, "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": state}
    body = {"status": {"phase": "Running", "containerStatuses": [status]}}
    (await api.merge(f"/api/v1/namespaces/default/pods/{name}-worker-0/status", body)).ok()
    return uid


def server_process(jobs: int, folder: str, channel: Any) -> None:
    """The process of the API server."""
    asyncio.run(serve(jobs, Path(folder), channel))


class Blocks:
    """How long single callbacks have held the loop, and how long without Python's garbage collector."""

    def __init__(self) -> None:
        self.wall = self.cpu = self.cpu_without_gc = 0.0
        self._collecting = self._collected = 0.0
        self._run = asyncio.events.Handle._run
        outer = self

        def timed(handle: asyncio.Handle) -> None:
            outer._collected = 0.0
            wall, cpu = time.perf_counter(), time.thread_time()
            outer._run(handle)
            wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
            outer.wall, outer.cpu = max(outer.wall, wall), max(outer.cpu, cpu)
            outer.cpu_without_gc = max(outer.cpu_without_gc, cpu - outer._collected)

        asyncio.events.Handle._run = timed  # type: ignore[method-assign]
        gc.callbacks.append(self._note_collection)

    def _note_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting


async def wait_for_all(kubeconfig: str, uids: list[str], seconds: float, poll_interval: float) -> dict[str, Any]:
    """Run the triggers for so long; returns what they used."""
    from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger

    async def consume(trigger: MXNetJobTrigger) -> None:
        async for event in trigger.run():
            raise AssertionError(f"the job should run on: {event}")

    before = resource.getrusage(resource.RUSAGE_SELF)
    memory = resident_bytes()
    blocks = Blocks()
    triggers = [
        MXNetJobTrigger(
            name=f"job-{number}",
            namespace="default",
            uid=uid,
            config_file=kubeconfig,
            kubernetes_conn_id=None,
            poll_interval=poll_interval,
            deferred_at=time.time(),
        )
        for number, uid in enumerate(uids)
    ]
    tasks = [asyncio.create_task(consume(trigger)) for trigger in triggers]
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()
    after = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "memory_mib": (resident_bytes() - memory) / 2**20,
        "block_wall_ms": blocks.wall * 1000,
        "block_cpu_ms": blocks.cpu * 1000,
        "block_cpu_without_gc_ms": blocks.cpu_without_gc * 1000,
    }
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--poll-interval", type=float, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    import mxnet_provider.hooks.mxnet_job_async
    import mxnet_provider.triggers.mxnet_job  # noqa: F401 - importing them is no part of what is measured

    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    with tempfile.TemporaryDirectory(prefix="mxjob-bench-") as folder:
        context = multiprocessing.get_context("spawn")
        server = context.Process(target=server_process, args=(options.jobs, folder, theirs))
        server.start()
        try:
            kubeconfig, uids = ours.recv()
            with Path(folder, "task.log").open("w") as log, contextlib.redirect_stdout(log):  # what triggers log
                found = asyncio.run(wait_for_all(kubeconfig, uids, options.seconds, options.poll_interval))
            ours.send("stop")
            asked = {
                what: count for what, count in ours.recv().items() if what != "DELETE mxjobs"
            }  # by cancelled triggers
        finally:
            server.join(30)
            if server.is_alive():
                server.kill()
    found["requests_per_minute"] = sum(asked.values()) * 60 / options.seconds
    if options.json:
        print(json.dumps(found | {"requests": asked}))
        return
    print(f"{options.jobs} jobs deferred for {options.seconds:.0f} s, a look every {options.poll_interval:.0f} s")
    print(f"  CPU                      {found['cpu_seconds'] / options.seconds:.1%} of one core")
    print(f"  memory                   {found['memory_mib']:.0f} MiB more than before")
    print(f"  requests                 {found['requests_per_minute']:.0f} a minute: {asked}")
    print(f"  longest block            {found['block_cpu_ms']:.1f} ms of CPU")
    print(f"                           {found['block_cpu_without_gc_ms']:.1f} ms of CPU without the garbage collector")
    print(f"                           {found['block_wall_ms']:.1f} ms on the clock")


if __name__ == "__main__":
    main()
