"""How much memory the controller takes for suspended jobs of 1.35 MB each: `bench_large_jobs.py [JOBS]`."""

import asyncio
import base64
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from apiserver_fixtures import running_server
from builders import make_mxjob
from controller_fixtures import JOBS, running_program, submitted
from waiting import SECONDS

SIZE = 1_350_000


async def measure(jobs):
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(Path(folder)) as running:
            for number in range(jobs):
                data = base64.b64encode(os.urandom(SIZE // 12 * 9 // 10)).decode()
                env = [{"name": f"DATA_{n}", "value": data[n:] + data[:n]} for n in range(10)]
                job = make_mxjob(f"large-{number}").worker(1, env=env).run_policy(suspend=True)
                (await running.api.post(JOBS, submitted(job))).ok()
            async with running_program(running.kubeconfig, "--no-leader-elect") as program:
                await program.says("the caches are filled")
                async with asyncio.timeout(SECONDS):
                    while jobs and not await settled(running.api, jobs):  # noqa: ASYNC110 - nothing announces it
                        await asyncio.sleep(1)
                return memory(program.process.pid)


def memory(pid):
    """MiB that a process has now, and the most that it had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return [int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) / 1024 for name in ("VmRSS", "VmHWM")]


async def settled(api, jobs):
    items = (await api.get(JOBS)).ok()["items"]
    return sum(job.get("status", {}).get("state") == "Suspended" for job in items) == jobs


async def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for count in (0, jobs):
        now, most = await measure(count)
        print(f"{count} jobs of {SIZE / 1e6} MB: {now:.0f} MiB, at most {most:.0f} MiB", flush=True)


asyncio.run(main())
