"""What a CRD of MXJobs costs a real API server: `bench_crd.py [JOBS [FILE ...]]`.

500 jobs of 11 pods are created, then each status is patched once, 8 requests in flight, no controller. One server
serves all CRDs, each in a group of its own, and they take turns of 24 jobs, so that other work on the machine meets all
of them. Figures are CPU time of kube-apiserver for each write, medians over the turns, and medians of the ratios to
training-operator 1.8.1's CRD in the same turn. Further CRDs, such as another checkout's, are compared by their files.
"""

import asyncio
import copy
import statistics
import sys
import tempfile
import time
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from builders import make_mxjob
from control_plane import control_plane
from control_plane_fixtures import new_namespace, real_api
from controller_fixtures import submitted
from kubernetes_programs import CONTROL_PLANE, MissingProgramError, programs
from left_overs import end_all_with_this, folder_prefix
from training_operator import its_crd

from mxnet_operator.api.crd import custom_resource_definition

AT_A_TIME = 8
A_TURN = 24
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


def read_crd(file):
    return next(yaml.safe_load_all(Path(file).read_text()))


def cpu(pid):
    """CPU ms of a process, by its own clock: /proc counts in steps of 10."""
    return time.clock_gettime(~pid << 3 | 2) * 1000


def job(name, api_version):
    manifest = submitted(make_mxjob(name).gang(servers=2, workers=8)) | {"apiVersion": api_version}
    del manifest["metadata"]["namespace"]
    return manifest


def in_group(crd, group):
    """A CRD in another group, so that several of one name are served."""
    crd = copy.deepcopy(crd)
    crd["metadata"] = {"name": f"mxjobs.{group}"}
    crd["spec"]["group"] = group
    for field in ("shortNames", "categories"):
        crd["spec"]["names"].pop(field, None)
    return crd


class Contestant:
    """A CRD on a server; `costs` are ms of each creation, and of each patch of a status, turn by turn."""

    def __init__(self, api, namespace, group, pid):
        self._api, self._pid, self._version = api, pid, f"{group}/v1"
        self._path = f"/apis/{group}/v1/namespaces/{namespace}/mxjobs"
        self.costs = {"create": [], "patch": []}

    async def _write(self, kind, name):
        if kind == "create":
            (await self._api.post(self._path, job(name, self._version))).ok()
        else:
            (await self._api.merge(f"{self._path}/{name}/status", {"status": STATUS})).ok()

    async def turn(self, kind, number):
        waiting = iter([f"job-{number}-{index}" for index in range(A_TURN)])

        async def take():
            for name in waiting:
                await self._write(kind, name)

        used = cpu(self._pid)
        await asyncio.gather(*(take() for _ in range(AT_A_TIME)))
        await asyncio.sleep(0.1)  # its watches go on for a moment
        self.costs[kind].append((cpu(self._pid) - used) / A_TURN)


async def measure(paths, crds, turns):
    """Each CRD's costs; the first turn, in which the schema is compiled, doesn't count."""
    moved = [in_group(crd, f"crd{number}.example.org") for number, crd in enumerate(crds)]
    served = custom_resource_definition()  # control_plane waits until this one is
    with (
        tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder,
        control_plane(paths, Path(folder), [served, *moved]) as server,
    ):
        (pid,) = [each.process.pid for each in server.programs.started if each.name == "kube-apiserver"]
        async with real_api(server, seconds=None) as api, new_namespace(api, settled=True) as namespace:
            contestants = [Contestant(api, namespace, crd["spec"]["group"], pid) for crd in moved]
            for number in range(turns + 1):
                for kind in ("create", "patch"):
                    for at in range(len(contestants)):
                        await contestants[(at + number) % len(contestants)].turn(kind, number)
    return [{kind: costs[1:] for kind, costs in each.costs.items()} for each in contestants]


async def main():
    turns = max(1, (int(sys.argv[1]) if len(sys.argv) > 1 else 500) // A_TURN)
    crds = {"training-operator 1.8.1": its_crd(), "ours": custom_resource_definition()}
    crds |= {file: read_crd(file) for file in sys.argv[2:]}
    try:
        paths = programs(CONTROL_PLANE)
    except MissingProgramError as error:
        sys.exit(str(error))
    measured = await measure(paths, list(crds.values()), turns)
    print("| CRD | create, ms | status patch, ms |\n|---|---|---|")
    for name, costs in zip(crds, measured, strict=True):
        cells = []
        for kind, found in costs.items():
            ratios = [ours / theirs for ours, theirs in zip(found, measured[0][kind], strict=True)]
            cells.append(f"{statistics.median(found):.1f} ({statistics.median(ratios):.2f})")
        print(f"| {name} | {' | '.join(cells)} |")


end_all_with_this()
asyncio.run(main())
