"""What 200 deferred tasks cost Airflow's triggerer, all of it: `airflow triggerer` as a process, for two minutes.

    make bench            (or: python tests/perf/bench_triggerer.py --jobs 200 --seconds 120 --poll-interval 10)

The API server is our own, in a process of its own; its jobs run, and each worker writes a log line every two seconds.
The same triggerer is measured first without a task: what Airflow costs by itself. The longest block of its event loop
is what Airflow's own watchdog tells, on the clock, which other programs lengthen.
"""

import argparse
import asyncio
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from waiting import eventually

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import airflow_home  # noqa: F401 - before anything imports Airflow
from airflow_server import AirflowServer
from apiserver_fixtures import running_server
from postgres import Database, postgres_server
from process_cost import count_requests, cpu

from mxnet_operator.api import names
from mxnet_operator.local.apiserver.logs import LogRequest

HERE = Path(__file__).resolve().parent
_WATCHDOG = 0.1
"""Seconds that Airflow's watchdog sleeps between two looks at the clock; what is beyond it was a block."""


STARTED = time.time()


class GrowingLogs:
    """The log of a worker that writes an epoch's figure every two seconds."""

    async def open(self, pod_uid: str, request: LogRequest) -> Any:
        since = request.since_time
        first = datetime.fromisoformat(since).timestamp() if since else STARTED
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


def group(leader: int) -> list[Path]:
    """The folders in /proc of the processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            found.append(folder)
    return found


def cpu_seconds(leader: int) -> float:
    """What the processes of a session have used."""
    return sum(cpu(folder.name) for folder in group(leader))


def memory_mib(leader: int) -> float:
    """What the processes of a session hold; pages that they share count once."""
    rollups = [(folder / "smaps_rollup").read_text() for folder in group(leader)]
    return sum(int(match[1]) for text in rollups if (match := re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE))) / 1024


def used(leader: int, seconds: float) -> dict[str, float]:
    """What a session of processes uses while so many seconds pass."""
    before, began = cpu_seconds(leader), time.monotonic()
    time.sleep(seconds)
    share = (cpu_seconds(leader) - before) / (time.monotonic() - began)
    return {"cpu": share, "memory_mib": memory_mib(leader)}


def blocks_ms(log: str) -> list[float]:
    """How long Airflow's watchdog says that the event loop was blocked, each time."""
    return [(float(s) - _WATCHDOG) * 1000 for s in re.findall(r"async thread was blocked for ([\d.]+) seconds", log)]


def measure(
    home: Path, kubeconfig: str, uids: list[str], options: argparse.Namespace, channel: Any, *, database: Database
) -> dict[str, Any]:
    """Run the triggerer without tasks, then with all; returns what it used."""
    airflow = AirflowServer(
        home,
        HERE / "dags",
        database,
        KUBECONFIG=kubeconfig,
        MXJOB_BENCH_JOBS=str(len(uids)),
        AIRFLOW__TRIGGERER__BLOCKED_MAIN_THREAD_WARNING_THRESHOLD=str(_WATCHDOG + 0.005),
    )
    airflow.run("dag-processor", "--num-runs", "1")
    log = home / "triggerer.log"
    leader = airflow.start("triggerer")
    try:
        eventually(lambda: len(group(leader)) > 1 and "Starting the triggerer" in log.read_text())
        time.sleep(10)
        alone = used(leader, 30)
        jobs = [{"name": f"job-{number}", "uid": uid} for number, uid in enumerate(uids)]
        jobs.sort(key=lambda job: job["name"])
        given = json.dumps({"jobs": jobs, "poll_interval": options.poll_interval})
        program = [sys.executable, str(HERE / "defer_tasks.py")]
        subprocess.run(program, input=given, text=True, check=True, env=airflow.environment, stdout=subprocess.DEVNULL)
        eventually(lambda: len(list(home.rglob("attempt=1.log.trigger.*"))) == len(uids))
        starting = len(log.read_text())
        channel.send("count")
        busy = used(leader, options.seconds)
        channel.send("stop")
        asked = channel.recv()
        text = log.read_text()
    finally:
        airflow.stop_all()
    return {
        "alone": alone,
        "with_tasks": busy,
        "requests": asked,
        "requests_per_minute": sum(asked.values()) * 60 / options.seconds,
        "block_ms": max(blocks_ms(text[starting:]), default=0.0),
        "block_at_start_ms": max(blocks_ms(text[:starting]), default=0.0),
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--poll-interval", type=float, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with tempfile.TemporaryDirectory(prefix="mxjob-bench-") as folder, postgres_server() as postgres:
        home = Path(folder, "airflow")
        home.mkdir()
        server = context.Process(target=server_process, args=(options.jobs, folder, theirs))
        server.start()
        try:
            found = measure(home, *ours.recv(), options, ours, database=postgres.airflow())
        finally:
            server.join(30)
            if server.is_alive():
                server.kill()
    if options.json:
        print(json.dumps(found))
        return
    looks = f"a look every {options.poll_interval:.0f} s (in brackets: without a task)"
    print(f"airflow triggerer with {options.jobs} deferred tasks for {options.seconds:.0f} s, {looks}")
    alone, busy = found["alone"], found["with_tasks"]
    print(f"  CPU                      {busy['cpu']:.1%} of one core ({alone['cpu']:.1%})")
    print(f"  memory                   {busy['memory_mib']:.0f} MiB ({alone['memory_mib']:.0f} MiB)")
    print(f"  requests                 {found['requests_per_minute']:.0f} a minute: {found['requests']}")
    print(f"  longest block            {found['block_ms']:.0f} ms on the clock")
    print(f"                           {found['block_at_start_ms']:.0f} ms while all of them start at once")


if __name__ == "__main__":
    main()
