"""The least that a controller can cost: `bare_client.py SERVER CA_FILE` posts objects, 32 at a time, and nothing else.

Its first line of input is JSON: the path and the body of each object of a job, with JOB and UID in place of the job's
name and uid. Each further line is the name and the uid of one job. It prints a job's name once its objects are stored.
"""

import asyncio
import json
import os
import ssl
import sys

import aiohttp
import uvloop

IN_FLIGHT = 32


async def main():
    base, authority = sys.argv[1:]
    trust = ssl.create_default_context(cafile=authority)
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Content-Type": "application/json"}
    requests = asyncio.Queue()
    lines = asyncio.StreamReader(limit=2**20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    objects = json.loads(await lines.readline())
    left = {}
    async with aiohttp.ClientSession(
        base, connector=aiohttp.TCPConnector(limit=0, ssl=trust), headers=headers
    ) as session:

        async def post():
            while True:
                job, path, body = await requests.get()
                async with session.post(path, data=body) as answer:
                    reply = await answer.read()
                    assert answer.status == 201, reply
                left[job] -= 1
                if not left[job]:
                    print(job, flush=True)

        async def read():
            while line := await lines.readline():
                job, uid = line.decode().split()
                left[job] = len(objects)
                for path, body in objects:
                    requests.put_nowait((job, path, body.replace("UID", uid).replace("JOB", job).encode()))

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(read())
            for _ in range(IN_FLIGHT):
                tasks.create_task(post())


uvloop.run(main())
