"""What a CRD of MXJobs costs a real API server: `bench_crd.py [JOBS [FILE ...]]`.

300 jobs of 11 pods are created, then each status is patched once, 8 requests in flight, no controller. Figures are the
CPU time of kube-apiserver for each write, medians of three rounds, with their ratio to training-operator 1.8.1's CRD.
Further CRDs, such as another checkout's, are compared by their files.
"""

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from builders import make_mxjob
from control_plane import control_plane
from control_plane_fixtures import new_namespace, real_api
from controller_fixtures import JOBS, submitted
from kubernetes_programs import CONTROL_PLANE, MissingProgramError, programs
from process_cost import cpu
from training_operator import its_crd

from mxnet_operator.api.definitions import definitions

ROUNDS = 3
AT_A_TIME = 8
STATUS = {
    "conditions": [
        {
            "type": "Created",
            "status": "True",
            "reason": "MXJobCreated",
            "message": "mxjob job is created.",
            "lastUpdateTime": "2026-11-28T12:00:00Z",
            "lastTransitionTime": "2026-11-28T12:00:00Z",
        }
    ],
    "replicaStatuses": {"Scheduler": {"active": 1}, "Server": {"active": 2}, "Worker": {"active": 8}},
    "startTime": "2026-11-28T12:00:00Z",
}


def job(name):
    manifest = submitted(make_mxjob(name).gang(servers=2, workers=8))
    del manifest["metadata"]["namespace"]
    return manifest


def read_crds(file):
    return [*yaml.safe_load_all(Path(file).read_text())]


async def measure(paths, crds, jobs):
    """CPU of the server in ms for each creation, and for each patch of a status."""
    with (
        tempfile.TemporaryDirectory() as folder,
        control_plane(paths, Path(folder), crds) as server,
    ):
        (pid,) = [each.process.pid for each in server.programs.started if each.name == "kube-apiserver"]
        async with real_api(server, seconds=None) as api, new_namespace(api, settled=True) as namespace:
            path = JOBS.replace("default", namespace)

            async def create(name):
                (await api.post(path, job(name))).ok()

            async def patch(name):
                (await api.merge(f"{path}/{name}/status", {"status": STATUS})).ok()

            async def cost(write, names):
                used, waiting = cpu(pid), iter(names)

                async def take():
                    for name in waiting:
                        await write(name)

                await asyncio.gather(*(take() for _ in range(AT_A_TIME)))
                return (cpu(pid) - used) * 1000 / len(names)

            for write in (create, patch):  # warms the schema's compiled rules
                await cost(write, [f"first-{number}" for number in range(AT_A_TIME)])
            names = [f"job-{number}" for number in range(jobs)]
            return await cost(create, names), await cost(patch, names)


async def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    contestants = {"training-operator 1.8.1": [its_crd()], "ours": definitions()}
    contestants |= {file: read_crds(file) for file in sys.argv[2:]}
    try:
        paths = programs(CONTROL_PLANE)
    except MissingProgramError as error:
        sys.exit(str(error))
    measured = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, crds in contestants.items():
            measured[name].append(await measure(paths, crds, jobs))
            print(name, *(f"{each:.1f}" for each in measured[name][-1]), file=sys.stderr, flush=True)
    print("| CRD | create, ms | status patch, ms |\n|---|---|---|")
    first = None
    for name, rounds in measured.items():
        numbers = [statistics.median(column) for column in zip(*rounds, strict=True)]
        first = first or numbers
        cells = [f"{number:.1f} ({number / of_first:.2f})" for number, of_first in zip(numbers, first, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


asyncio.run(main())
