"""What a job of 11 pods costs a controller on a real API server: `bench_controller.py [JOBS [BASE ...]]`.

This checkout's controller is compared with each BASE:

- `bare` posts the same pods and Services, 32 at a time, and does nothing else;
- `replay` also watches and writes what our controller does: three statuses and an Event of each job;
- `peer` is training-operator 1.8.1 with 10 threads and no limit of its client;
- `peer-as-shipped` is training-operator 1.8.1 with its defaults, at which 50 jobs take a minute: only if it is named;
- the folder of another checkout is its controller.

They work one after the other, each alone, in three rounds, or in one where there are more than 500 jobs. Figures are
medians, with their ratio to the first BASE and to `replay`.
KWOK runs the pods. A job's Scheduler ends last, after a second, and every job has to succeed.
"""

import asyncio
import contextlib
import json
import math
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from builders import make_mxjob
from control_plane_fixtures import new_namespace, our_kubernetes, real_api
from controller_fixtures import EVENTS, JOBS, PODS, SERVICES, running_program, submitted
from fake_nodes import EXIT_CODE, FATES, RUNS_FOR, fake_node, fake_nodes
from kubernetes_programs import CONTROL_PLANE, MissingProgramError, programs
from left_overs import end_all_with_this
from process_cost import cpu, peak
from training_operator import install_training_operator, training_operator

from mxnet_operator.api.conditions import TERMINAL, job_state
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.validation import decode
from mxnet_operator.builders import build_pod, build_service
from mxnet_operator.plan.children import wanted_services

HERE = Path(__file__).parents[2]
OURS, BARE, REPLAY, PEER, AS_SHIPPED = "ours", "bare", "replay", "peer", "peer-as-shipped"
REPLICAS = {"Scheduler": 1, "Server": 2, "Worker": 8}
ROUNDS = 3
ALONE = 30
"""Jobs that run one at a time, in the first of several rounds."""
MANY = 500
USER, ITS_NAME = "controller", "mxnet-operator"
"""Whom the API server takes every controller for."""
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
COLUMNS = ("all pods exist, s", "CPU ms a job", "peak MB", "writes a job")


def job(name):
    command = {"command": ["true"]}
    builder = make_mxjob(name)
    for replica_type, count in REPLICAS.items():
        builder.replicas(replica_type, count, **command).template_metadata(replica_type, annotations={EXIT_CODE: "0"})
    last = {FATES: json.dumps({"0.0": {"exitCode": 0}}), RUNS_FOR: "1s"}
    builder.template_metadata("Scheduler", annotations=last).run_policy(cleanPodPolicy="None")
    manifest = submitted(builder)
    del manifest["metadata"]["namespace"]
    return manifest


def objects(namespace):
    """What our controller creates for a job."""
    manifest = job("JOB")
    manifest["metadata"] |= {"namespace": namespace, "uid": "UID"}
    made = with_defaults(decode(manifest))
    services = [build_service(made, each.name, each.role) for each in wanted_services(made)]
    pods = [build_pod(made, kind, index, 0, has_hook=True) for kind, n in REPLICAS.items() for index in range(n)]
    posted = [(SERVICES, each) for each in services] + [(PODS, each) for each in pods]
    return [(in_namespace(path, namespace), json.dumps(each)) for path, each in posted]


def writes_besides(namespace):
    """What else it writes for a job, and what it watches, as `bare_client.py` takes it."""
    now, jobs = "2026-11-29T12:00:00Z", in_namespace(JOBS, namespace)
    conditions, statuses = [], []
    for number, kind in enumerate(("Created", "Running", "Succeeded")):
        told = {"reason": f"MXJob{kind}", "message": f"MXJob JOB is {kind}.", "lastTransitionTime": now}
        conditions.append({"type": kind, "status": "True", "lastUpdateTime": now, **told})
        counts = {each: {("active", "active", "succeeded")[number]: count} for each, count in REPLICAS.items()}
        status = {"state": kind, "conditions": conditions, "replicaStatuses": counts, "startTime": now}
        statuses.append((f"{jobs}/JOB/status", json.dumps({"status": status})))
    event = {
        "metadata": {"name": "JOB.end"},
        "involvedObject": {"kind": "MXJob", "name": "JOB", "namespace": namespace, "uid": "UID"},
        "reason": "MXJobSucceeded",
        "message": "MXJob JOB is successfully completed.",
    }
    watches = [in_namespace(path, namespace) for path in (JOBS, SERVICES, PODS)]
    return {"watches": watches, "statuses": statuses, "event": (in_namespace(EVENTS, namespace), json.dumps(event))}


def in_namespace(path, namespace):
    return path.replace("default", namespace)


@dataclass
class Running:
    """A contestant at work; `ends` gives the names of jobs that are done."""

    pid: int
    ends: AsyncIterator[str]
    created: Callable[[dict[str, Any]], None] = lambda job: None
    deciding: tuple[str, ...] = ("scheduler", "worker")
    """The types of replicas whose end is the job's."""


@contextlib.asynccontextmanager
async def contestant(name, server, api, namespace):
    """One of the above, at work in a namespace."""
    kubeconfig = server.kubeconfig(USER)
    async with contextlib.aclosing(ended_jobs(api, namespace)) as ends:
        if name in (BARE, REPLAY):
            async with bare_client(server, namespace, replays=name == REPLAY) as running:
                yield running
        elif name in (PEER, AS_SHIPPED):
            flags = {"controller_threads": 10} if name == PEER else {}
            with training_operator(server, kubeconfig, limited=name == AS_SHIPPED, namespace=namespace, **flags) as pid:
                yield Running(pid, ends, deciding=("scheduler",))
        else:
            options = ("--no-leader-elect", "--namespace", namespace)
            code = f"{HERE if name == OURS else name}/operator"
            async with running_program(kubeconfig, *options, PYTHONPATH=code) as program:
                log = asyncio.create_task(program.process.stderr.read())  # a full pipe would block it
                try:
                    yield Running(program.process.pid, ends)
                finally:
                    log.cancel()
                    await asyncio.gather(log, return_exceptions=True)


@contextlib.asynccontextmanager
async def bare_client(server, namespace, *, replays):
    program = str(Path(__file__).with_name("bare_client.py"))
    pipe = asyncio.subprocess.PIPE
    environment = os.environ | {"TOKEN": server.tokens[USER]}
    command = [sys.executable, program, server.url, str(server.authority)]
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=environment)
    described = {"objects": objects(namespace), "replay": writes_besides(namespace) if replays else {}}
    process.stdin.write(f"{json.dumps(described)}\n".encode())

    def created(made):
        process.stdin.write(f"{made['metadata']['name']} {made['metadata']['uid']}\n".encode())

    async def ends():
        while line := await process.stdout.readline():
            yield line.decode().strip()

    try:
        yield Running(process.pid, ends(), created, deciding=("scheduler",) if replays else ())
    finally:
        process.kill()
        await process.wait()


async def ended_jobs(api, namespace):
    """The names of jobs that succeed, as they do."""
    async with api.watch(in_namespace(JOBS, namespace)) as events:
        while event := await events.next():
            if (state := job_state(event["object"])) in TERMINAL:
                assert state == "Succeeded", event
                yield event["object"]["metadata"]["name"]


async def run(api, namespace, running, names):
    """Create jobs, eight at a time; returns when each was done."""
    waiting, ended = iter(names), {}

    async def submit():
        for name in waiting:
            running.created((await api.post(in_namespace(JOBS, namespace), job(name))).ok())

    async def wait():
        while len(ended) < len(names):
            name = await anext(running.ends)
            if name in names:
                ended.setdefault(name, time.time())

    await asyncio.gather(wait(), *(submit() for _ in range(8)))
    return ended


@dataclass
class Measured:
    numbers: tuple[float, ...]
    """As COLUMNS says."""
    idle: list[float]
    loaded: list[float]
    """Seconds from the end of a job's last pod to the job's, while nothing else runs, and while all jobs do."""
    writes: Counter[str]


async def measure(name, server, api, jobs, alone):
    """Run jobs one at a time, then so many at once."""
    async with new_namespace(api, settled=True) as namespace:
        async with contestant(name, server, api, namespace) as running:
            await run(api, namespace, running, ["first"])  # until then it starts
            one_by_one = {}
            for number in range(alone if running.deciding else 0):
                one_by_one |= await run(api, namespace, running, [f"alone-{number}"])
            began, used = time.time(), cpu(running.pid)
            at_once = await run(api, namespace, running, [f"job-{number}" for number in range(jobs)])
            used, most = cpu(running.pid) - used, peak(running.pid)
        entries = list(audited(server, namespace))
    while (await api.get(f"/api/v1/namespaces/{namespace}")).code != 404:  # noqa: ASYNC110 - the machine is busy until then
        await asyncio.sleep(1)
    await at_rest(server)
    created = [at for at, who, what, code, pod in entries if (what, code) == ("create pods", 201) and at > began]
    assert len(created) == jobs * sum(REPLICAS.values()), f"{name} has created {len(created)} pods"
    writes = Counter(
        what for at, who, what, _, _ in entries if who == ITS_NAME and at > began and what.split()[0] in WRITES
    )
    pod_ends = {pod: at for at, who, what, _, pod in entries if (who, what) == ("kwok", "patch pods/status")}

    def latencies(ended):
        found = []
        for each, at in ended.items() if running.deciding else ():
            prefixes = tuple(f"{each}-{kind}-" for kind in running.deciding)
            found.append(at - max(end for pod, end in pod_ends.items() if pod.startswith(prefixes)))
        return found

    numbers = (max(created) - began, used * 1000 / jobs, most, writes.total() / jobs)
    return Measured(numbers, latencies(one_by_one), latencies(at_once), writes)


async def at_rest(server):
    """Wait, ten minutes at most, until few requests come: kube-scheduler binds 50 pods a second, and is long behind."""

    def logged():
        return sum(file.stat().st_size for file in server.folder.glob("audit*.log"))

    size = logged()
    for _ in range(300):
        await asyncio.sleep(2)
        size, before = logged(), size
        if size - before < 20_000:  # some 20 requests
            return


def audited(server, namespace):
    """Requests for objects of a namespace, in their order: when, by whom, verb and resource, code, name."""
    entries = []
    for file in server.folder.glob("audit*.log"):
        with file.open() as lines:
            entries += [json.loads(line) for line in lines if namespace in line]
    for entry in sorted(entries, key=lambda entry: entry["stageTimestamp"]):
        ref = entry.get("objectRef", {})
        if ref.get("namespace") == namespace:
            what = "/".join(filter(None, (f"{entry['verb']} {ref['resource']}", ref.get("subresource"))))
            at = datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
            yield at, entry["user"].get("username"), what, entry["responseStatus"]["code"], ref.get("name", "")


def percentiles(seconds):
    """The 50th and the 99th, in ms."""
    found = [sorted(seconds)[math.ceil(len(seconds) * share) - 1] * 1000 for share in (0.5, 0.99)]
    return " / ".join(f"{each:.0f}" for each in found)


def medians(rounds):
    return [statistics.median(column) for column in zip(*(each.numbers for each in rounds), strict=True)]


def show(jobs, names, measured):
    """Print the table, and what each contestant has written."""
    latencies = (f"end of a pod to end of its job, ms, p50 / p99: {when}" for when in ("idle", "all jobs at once"))
    bases = {name: medians(measured[name]) for name in dict.fromkeys((names[0], REPLAY)) if name in names}
    rounds = len(measured[names[0]])
    print(f"{jobs} jobs of 11 pods, medians of {rounds} rounds, and ratios to {' and '.join(bases)}\n")
    print(f"| | {' | '.join((*COLUMNS, *latencies))} |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    for name in names:
        cells = []
        for number, *of_bases in zip(medians(measured[name]), *bases.values(), strict=True):
            cells.append(f"{number:.3g} ({', '.join(f'{number / of_base:.2f}' for of_base in of_bases)})")
        pooled = ([s for r in measured[name] for s in r.idle], [s for r in measured[name] for s in r.loaded])
        cells += [percentiles(seconds) if seconds else "" for seconds in pooled]
        print(f"| {name} | {' | '.join(cells)} |")
    print()
    for name in names:
        written = sum((each.writes for each in measured[name]), Counter())
        print(f"{name}: {', '.join(f'{what} {n / jobs / rounds:.1f}' for what, n in written.most_common())}")


async def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    names = [*(sys.argv[2:] or (BARE, REPLAY, PEER)), OURS]
    peers = ["training-operator"] if {PEER, AS_SHIPPED} & set(names) else []
    try:
        programs([*CONTROL_PLANE, *peers])
    except MissingProgramError as error:
        sys.exit(str(error))
    node = fake_node("n", cpu="100k", memory="100Ti", pods="1M")
    measured = {name: [] for name in names}
    with our_kubernetes() as server:
        if peers:
            install_training_operator(server)
        async with real_api(server, seconds=None) as api, fake_nodes(api, node):
            rounds = 1 if jobs > MANY else ROUNDS
            for number in range(rounds):
                alone = ALONE if number == 0 < rounds - 1 else 0
                for name in names:
                    measured[name].append(await measure(name, server, api, jobs, alone))
                    print(name, *(f"{each:.3g}" for each in measured[name][-1].numbers), file=sys.stderr, flush=True)
    show(jobs, names, measured)


end_all_with_this()
asyncio.run(main())
