"""What a job of 11 pods costs the controller on a real API server: `bench_controller.py [JOBS [CHECKOUT ...]]`.

KWOK runs the pods, which succeed after half a second. The controllers of several checkouts work at the same time, each
in a namespace of its own, so that a busy machine slows all of them alike: compare their ratios to the first.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from builders import make_mxjob
from control_plane_fixtures import new_namespace, our_kubernetes, real_api
from controller_fixtures import JOBS, running_program, submitted
from fake_nodes import ending, fake_node, fake_nodes
from process_cost import cpu, peak

HERE = Path(__file__).parents[2]
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
COLUMNS = ("CPU ms a job", "peak MB", "writes a job")


def job(name):
    command = {"command": ["true"]}
    builder = make_mxjob(name).scheduler(1, **command).server(2, **command).worker(8, **command)
    manifest = submitted(ending(builder, Scheduler=0, Server=0, Worker=0).run_policy(cleanPodPolicy="None"))
    del manifest["metadata"]["namespace"]
    return manifest


def writes(server, namespace):
    """What a controller has written in a namespace, by verb and resource."""
    asked = (each for each in server.requests("mxnet-operator") if each["verb"] in WRITES)
    refs = ((each["verb"], each["objectRef"]) for each in asked)
    return Counter(f"{verb} {ref['resource']}" for verb, ref in refs if ref.get("namespace") == namespace)


async def measure(server, api, checkout, jobs):
    """The columns for a controller that runs so many jobs which are created at once, and its writes by kind."""
    code = {"PYTHONPATH": f"{checkout}/operator"}
    async with new_namespace(api, settled=True) as namespace:
        path = JOBS.replace("default", namespace)
        options = ("--no-leader-elect", "--namespace", namespace)
        async with running_program(server.kubeconfig("controller"), *options, **code) as program:
            await program.says("the caches are filled")
            log = asyncio.create_task(program.process.stderr.read())
            pid = program.process.pid
            began = cpu(pid)
            numbers = iter(range(jobs))

            async def submit():
                for number in numbers:
                    (await api.post(path, job(f"job-{number}"))).ok()

            await asyncio.gather(*(submit() for _ in range(8)))
            while not await succeeded(api, path, jobs):  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(2)
            took, most = cpu(pid) - began, peak(pid)
            log.cancel()
            await asyncio.gather(log, return_exceptions=True)
        written = writes(server, namespace)
    return (took * 1000 / jobs, most, sum(written.values()) / jobs), written


async def succeeded(api, path, jobs):
    items = (await api.get(path)).ok()["items"]
    return sum(each.get("status", {}).get("state") == "Succeeded" for each in items) == jobs


async def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    checkouts = sys.argv[2:] or [str(HERE)]
    node = fake_node("n", cpu="100k", memory="100Ti", pods="1M")
    with our_kubernetes() as server:
        async with real_api(server, seconds=None) as api, fake_nodes(api, node):
            measured = await asyncio.gather(*(measure(server, api, each, jobs) for each in checkouts))
    print(f"{jobs} jobs of 11 pods", *(f"{column:>22}" for column in COLUMNS))
    first = measured[0][0]
    for checkout, (numbers, written) in zip(checkouts, measured, strict=True):
        print(*(f"{number:12.2f} (x {number / of_first:.2f})" for number, of_first in zip(numbers, first, strict=True)))
        print(f"  {checkout}: {', '.join(f'{what} {count / jobs:.1f}' for what, count in written.most_common())}")


asyncio.run(main())
