"""What many jobs at rest cost the controller: `bench_fleet.py [JOBS [WORKERS [finished]]]`.

The local API server holds the jobs, their Services and their pods, which run or have finished: copies of one job that a
controller has made. It prints CPU and memory of a leader and of a standby, what the leader uses in a minute at rest,
how soon a new job has its pods when the leader begins, and how soon another has them after the leader is told to end.
"""

import asyncio
import json
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from builders import make_mxjob
from controller_fixtures import JOBS, PODS, SERVICES, running_program, submitted, world
from process_cost import count_requests, cpu, peak

from mxnet_operator.api.names import LABEL_JOB_NAME
from mxnet_operator.local.apiserver.requests import find_target

OTHERS = 2
"""Pods of a job beside its workers: a scheduler and a server."""


def manifest(name, workers):
    return submitted(make_mxjob(name).scheduler(1).server(1).worker(workers))


def cost(program):
    """What a controller has used so far."""
    pid = program.process.pid
    return f"{cpu(pid):.1f} CPU s, at most {peak(pid):.0f} MB"


async def at_rest(program):
    """Return once a controller has used no CPU for three seconds: it has seen to every job."""
    before = -1.0
    while cpu(program.process.pid) > before + 0.03:
        before = cpu(program.process.pid)
        await asyncio.sleep(3)


async def minute(made, program):
    """What a controller uses in a minute."""
    before, asked = cpu(program.process.pid), count_requests(made.running.server)
    await asyncio.sleep(60)
    return f"{cpu(program.process.pid) - before:.2f} CPU s, {asked.total()} requests: {dict(asked)}"


async def fill(made, jobs, workers, *, finished):
    """Store so many jobs whose pods run, or have succeeded."""
    await made.submit(manifest("job-0", workers))
    pods = await made.eventually(PODS, lambda pods: len(pods) == workers + OTHERS)
    await made.move(pods, "Running")
    await made.state("job-0", "Running")
    if finished:
        await made.move(pods, "Succeeded", exit_code=0)
        await made.state("job-0", "Succeeded")
    await made.stop()
    store = made.running.server.store
    job_uid = next(iter((await made.api.listed(JOBS))[0].values()))["metadata"]["uid"]
    for path in (JOBS, PODS, SERVICES):
        key = find_target(store.catalog, path).resource.key
        for original in store.storage.objects(key):
            text, uid = json.dumps(original), original["metadata"]["uid"]
            for number in range(1, jobs):
                copied = text.replace("job-0", f"job-{number}")
                copied = copied.replace(job_uid, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{number}")))
                store.storage.put(key, json.loads(copied.replace(uid, str(uuid.uuid4()))))


async def served(made, name, workers):
    """Seconds until a job that is created now has all its pods."""
    began = time.monotonic()
    await made.submit(manifest(name, workers))
    of_job = f"{LABEL_JOB_NAME}={name}"
    await made.api.until(PODS, lambda pods: len(pods) == workers + OTHERS, labelSelector=of_job)
    return time.monotonic() - began


async def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    finished = sys.argv[3:] == ["finished"]
    with tempfile.TemporaryDirectory() as folder:
        async with world(Path(folder)) as made:
            await fill(made, jobs, workers, finished=finished)
            print(f"{jobs} jobs with {jobs * (workers + OTHERS)} pods", flush=True)
            async with running_program(made.kubeconfig) as leader:
                await leader.says("running jobs")
                print(
                    f"a new job has its pods after {await served(made, 'new-a', 2):.1f} s: {cost(leader)}", flush=True
                )
                await at_rest(leader)
                print(f"every job has been looked at: {cost(leader)}", flush=True)
                print(f"a minute at rest: {await minute(made, leader)}", flush=True)
                async with running_program(made.kubeconfig) as standby:
                    await standby.says("the caches are filled")
                    await at_rest(standby)
                    print(f"a standby: {cost(standby)}", flush=True)
                    leader.process.terminate()
                    print(f"it leads: a new job has its pods after {await served(made, 'new-b', 2):.1f} s")


asyncio.run(main())
