"""The least that a controller can cost: `bare_client.py SERVER CA_FILE` writes, 32 at a time, and decides nothing.

Its first line of input is JSON: `objects` has the path and the body of each object of a job, with JOB and UID in place
of the job's name and uid. `replay` is empty, or has what a controller watches, and each path and body of the patches of
a status: once the objects are stored, once all pods have started, and once the Scheduler has ended. Each further line
is the name and the uid of one job. It prints a job's name once it has made all writes for it.
"""

import asyncio
import json
import os
import ssl
import sys
from collections import defaultdict

import aiohttp
import msgspec
import uvloop

IN_FLIGHT = 32
CONTENT_TYPES = {"POST": "application/json", "PATCH": "application/merge-patch+json"}
JOB_NAME, ROLE = "training.kubeflow.org/job-name", "training.kubeflow.org/replica-type"


class Pods:
    """What has become of a job's pods."""

    def __init__(self):
        self.begun, self.all_begun, self.ended = set(), asyncio.Event(), asyncio.Event()

    def see(self, pod, number):
        self.begun.add(pod["metadata"]["name"])
        if len(self.begun) == number:
            self.all_begun.set()
        if pod["metadata"]["labels"][ROLE] == "scheduler" and pod["status"]["phase"] == "Succeeded":
            self.ended.set()


async def main():
    base, authority = sys.argv[1:]
    trust = ssl.create_default_context(cafile=authority)
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    lines = asyncio.StreamReader(limit=2**20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    described = json.loads(await lines.readline())
    objects, replay = described["objects"], described["replay"]
    places, pods = asyncio.Semaphore(IN_FLIGHT), defaultdict(Pods)
    number_of_pods = sum(path.endswith("/pods") for path, _ in objects)
    async with aiohttp.ClientSession(
        base, connector=aiohttp.TCPConnector(limit=0, ssl=trust), headers=headers
    ) as session:

        async def write(method, written, job, uid):
            async with places:
                path, body = (text.replace("UID", uid).replace("JOB", job) for text in written)
                sent = {"Content-Type": CONTENT_TYPES[method]}
                async with session.request(method, path, data=body.encode(), headers=sent) as answer:
                    reply = await answer.read()
                    assert answer.ok, reply

        async def run(job, uid):
            await asyncio.gather(*(write("POST", each, job, uid) for each in objects))
            if replay:
                seen = pods[job]
                for until, status in zip((None, seen.all_begun, seen.ended), replay["statuses"], strict=True):
                    if until is not None:
                        await until.wait()
                    await write("PATCH", status, job, uid)
                await write("POST", replay["event"], job, uid)
                del pods[job]
            print(job, flush=True)

        async def watch(path):
            endless = aiohttp.ClientTimeout(total=None)
            async with session.get(path, params={"watch": "true"}, timeout=endless) as answer:
                async for line in answer.content:
                    found = msgspec.json.decode(line)["object"]
                    if found["kind"] == "Pod" and found["status"]["phase"] != "Pending":
                        pods[found["metadata"]["labels"][JOB_NAME]].see(found, number_of_pods)

        async with asyncio.TaskGroup() as tasks:
            for path in replay.get("watches", ()):
                tasks.create_task(watch(path))
            while line := await lines.readline():
                tasks.create_task(run(*line.decode().split()))


uvloop.run(main())
