"""What 200 deferred tasks cost Airflow's triggerer, all of it: `airflow triggerer` as a process, for two minutes.

    make bench            (or: python tests/perf/bench_triggerer.py --jobs 200 --seconds 120 --poll-interval 10)

The API server is our own, in a process of its own; its jobs run, and each worker writes a log line every two seconds.
The same triggerer is measured first without a task: what Airflow costs by itself. The longest block of its event loop
is what Airflow's own watchdog tells, on the clock, which other programs lengthen; bench_deferred.py has it in processor
time.
"""

import argparse
import json
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from waiting import eventually

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import airflow_home  # noqa: F401 - before anything imports Airflow
from airflow_server import AirflowServer
from bench_deferred import server_process
from postgres import Database, postgres_server
from process_cost import cpu

HERE = Path(__file__).resolve().parent
_WATCHDOG = 0.1
"""Seconds that Airflow's watchdog sleeps between two looks at the clock; what is beyond it was a block."""


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
