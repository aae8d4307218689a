"""Draw a schedule from a seed: which job, and step by step what happens to it."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from simulator.api import CHILDREN, URGENT
from simulator.kubelet import DISRUPTIONS, NODE_NAMES
from simulator.kueue import QUEUES, RIVALS
from simulator.schedule import Setup, Step, pod_name
from simulator.transport import FAULTS
from simulator.world import World

STEPS = 50
GAPS = 0.2
"""Part of the schedules in which nobody leads for a while."""
CUTS = 0.2
"""Part of the schedules in which nodes are lost and come back while their pods run."""
STALLED = 138
"""Exit code of a worker that a stall has ended."""
FEWER = 0.4
"""Part of the jobs with two Workers that may go on with one."""
NO_ROOM = 0.1
"""Part of the steps of such a schedule in which a restarted gang finds no room for a Worker."""
QUEUED = 0.2
"""Part of the schedules in which the job names a queue of Kueue's."""
QUEUE_STEPS = 0.35
"""Part of the steps of such a schedule that are Kueue's, or about the queue."""
EXIT_CODES = (1, 2, 3, 130, 134, 137, 138, 139, 143)
LAST_CONTAINER = (0, 1, 30)
"""Seconds from the end of a pod's mxnet container until its last one, a sidecar, has ended too."""
RESOURCES = ("jobs", *(row.resource.plural for row in CHILDREN))
EDITS: tuple[tuple[str, Any], ...] = (
    ("restartScope", "Job"),
    ("restartScope", "Replica"),
    ("restartScope", None),
    ("cleanPodPolicy", "All"),
    ("cleanPodPolicy", "None"),
    ("exitCodes", {"retryable": [1], "permanent": [130]}),
    ("exitCodes", None),
    ("activeDeadlineSeconds", 3600),
    ("progressDeadlineSeconds", 3600),
    ("ttlSecondsAfterFinished", 100),
    ("schedulingPolicy", {"minAvailable": 1}),
    ("schedulingPolicy", None),
)
"""Fields of the runPolicy that a user edits, and to what; None takes one away."""
Draw = Callable[[World], Iterator[Step]]


def draw_setup(seed: int) -> tuple[Setup, bool, random.Random]:
    """The job of a schedule, whether nothing goes wrong in it, and what draws its steps."""
    rng = random.Random(seed)
    shape = rng.random()
    if shape < 0.5:
        replicas = {"Scheduler": 1, "Server": 1, "Worker": rng.randint(1, 2)}
    elif shape < 0.75:
        replicas = {"Worker": rng.randint(1, 2)}
    else:
        replicas = {"TunerTracker": 1, "TunerServer": 1, "Tuner": 1}
    calm = rng.random() < 0.05
    rare: tuple[tuple[str, Any, float], ...] = (
        ("suspend", True, 0.1),
        ("restartScope", rng.choice(["Job", "Replica"]), 0.1),
        ("activeDeadlineSeconds", rng.choice([60, 3600]), 0.1),
        ("progressDeadlineSeconds", rng.choice([60, 3600]), 0.1),
        ("ttlSecondsAfterFinished", rng.choice([0, 100]), 0.05),
        ("exitCodes", {"retryable": [3], "permanent": [143]}, 0.2),
    )
    policy = {
        "backoffLimit": rng.randint(0, 3),
        "cleanPodPolicy": rng.choice(["None", "Running", "All"]),
        **{field: value for field, value, likely in rare if rng.random() < likely and not calm},
    }
    restart = rng.choice(["Never", "OnFailure", "Always", "ExitCode", "ExitCode", "ExitCode"])
    rooms = random.Random(f"minWorkers of {seed}")  # Apart, so that a seed without one draws what it did before.
    if replicas.get("Worker") == 2 and not calm and rooms.random() < FEWER:
        policy["minWorkers"] = 1
    setup = Setup(replicas=replicas, restart=restart, policy=policy)
    return msgspec.structs.replace(setup, queue=_draw_queue(seed, setup, calm)), calm, rng


def _draw_queue(seed: int, setup: Setup, calm: bool) -> dict[str, int]:
    """Kueue's queue of a job, or none; drawn apart, so that a seed without one draws what it did before."""
    rng = random.Random(f"queue of {seed}")
    if rng.random() >= QUEUED:
        return {}
    pods = sum(setup.replicas.values())
    queue = {"quota": rng.randint(pods, pods + 2)}
    if calm:
        return queue
    if rng.random() < 0.25:
        queue["check"] = 1
    if rng.random() < 0.6:
        queue |= {"timeout": rng.choice([60, 300, 600]), "recovery": rng.choice([20, 60, 600])}
        if rng.random() < 0.3:
            queue["limit"] = rng.randint(0, 2)
    return queue


def draw_steps(rng: random.Random, calm: bool) -> Draw:
    """What draws one step after another, seeing the world as it has become."""

    # Drawn apart, so that a seed without a gap draws what it would draw if there were none at all.
    state = repr(rng.getstate())
    gaps = random.Random(state)
    gap_at = gaps.randrange(STEPS // 2) if not calm and gaps.random() < GAPS else STEPS
    cuts = random.Random(f"cut {state}")
    cut_at = cuts.randrange(5, STEPS // 2) if not calm and cuts.random() < CUTS else STEPS

    def steps(world: World) -> Iterator[Step]:
        # One controller, now and then two; a schedule keeps to some kinds of trouble, so that they meet often.
        second = not calm and rng.random() < 0.5
        trouble = 0.0 if calm else rng.choice([0.05, 0.15, 0.3])
        queues = random.Random(f"queue {state}") if world.setup.queue else rng
        rooms = random.Random(f"rooms {state}")
        for number in range(STEPS):
            if number == gap_at:
                yield from _nobody_leads(gaps, world)
            if number == cut_at:
                yield from _cut(cuts, world)
            if "minWorkers" in world.setup.policy and rooms.random() < NO_ROOM:
                yield from _no_room(rooms, world)
            if world.setup.queue and queues.random() < QUEUE_STEPS:
                yield from _queue(queues, world, calm)
                continue
            kind = rng.random()
            if kind < trouble:
                yield _trouble(rng, world)
            elif kind < trouble + (1 - trouble) * 0.45:
                yield from _controller(rng, "b" if second and rng.random() < 0.3 else "a", calm)
            else:
                yield _life(rng, world)
            if trouble and rng.random() < 0.03:  # What ends together, ends well or not, before anybody looks.
                yield ("finish",)
                yield ("exit", _label(rng, world), rng.choice(EXIT_CODES))

    return steps


def _nobody_leads(rng: random.Random, world: World) -> Iterator[Step]:
    """While both controllers stand still pods start, and some are taken away and collected; then one of them leads."""
    for _ in range(2):
        for label in world.setup.labels:
            yield ("kubelet", label)
    for label in rng.sample(world.setup.labels, rng.randint(1, 2) if len(world.setup.labels) > 1 else 1):
        yield ("disrupt", label, rng.choice(sorted(DISRUPTIONS)))
        yield ("kubelet", label)
    yield ("wait", rng.choice([1, 20, 60]))
    who = rng.choice(["a", "b"])
    if rng.random() < 0.5:
        yield ("die", who)
    yield ("hear", who)
    yield ("look", who)


def _cut(rng: random.Random, world: World) -> Iterator[Step]:
    """Nodes are silent while their pods run: a cut network, or all of them for a moment after the API server's outage.

    Pods are evicted meanwhile, now and then, and end once their node is back. A gang that is cut in two hangs until a
    stall ends one of its workers that run.
    """
    who = rng.choice(["a", "a", "b"])
    looks = [("hear", who), ("look", who)]
    for label in world.setup.labels * 2:
        yield ("kubelet", label)
    yield from looks
    nodes = rng.choice([NODE_NAMES, NODE_NAMES[:1], NODE_NAMES[1:]])
    yield from [("lose node", node) for node in nodes]
    yield from looks * rng.randint(0, 1)
    for label in world.setup.labels:
        if rng.random() < 0.4:
            yield ("disrupt", label, "taint")
    yield from [("wait", rng.choice([1, 20, 300])), *looks * rng.randint(0, 2)]
    workers = [label for label in world.setup.labels if label.startswith("worker-")]
    stalled = [label for label in workers if (pod := world.api.pod(pod_name(label))) and world.kubelet.runs(pod)]
    if world.restarts_as_gang and stalled and rng.random() < 0.4:
        yield from [("hang", label) for label in world.setup.labels]
        yield from [("exit", rng.choice(stalled), STALLED), *looks]
    yield from [("node up", node) for node in nodes if rng.random() < 0.9]
    yield from looks


def _no_room(rng: random.Random, world: World) -> Iterator[Step]:
    """A gang is restarted, and a minute later one Worker has no node; now and then nor have others."""
    who, left_out = rng.choice(["a", "a", "b"]), rng.choice(["worker-0", "worker-1"])
    looks = [("hear", who), ("look", who)]
    if rng.random() < 0.7:
        yield from [("disrupt", _label(rng, world), "drain"), *looks, *looks]
        yield from [*(("kubelet", label) for label in world.setup.labels), ("wait", 20), *looks, *looks, *looks]
    for label in world.setup.labels:
        if label != left_out and rng.random() < 0.95:
            yield ("kubelet", label)
    yield from [("unschedulable", left_out), ("wait", rng.choice([20, 60, 60])), *looks]


def _queue(rng: random.Random, world: World, calm: bool) -> Iterator[Step]:
    """What happens in a queue: mostly what Kueue does by itself, now and then what keeps a job waiting or evicts it."""
    kind = rng.random()
    if calm or kind < 0.5:
        yield from [("kueue",)] * rng.randint(1, 3)
        return
    who = rng.choice(["a", "a", "b"])
    if kind < 0.55:  # What it has heard of the job, its pods and its Workload are of different times.
        yield ("hear", who, rng.choice(["jobs", "pods", "workloads"]), rng.randint(1, 3))
        yield ("look", who)
        return
    one_of: tuple[tuple[float, Callable[[], Step]], ...] = (
        (0.6, lambda: ("rival", rng.randrange(len(RIVALS)), rng.randint(1, world.setup.queue["quota"]), 0)),
        (0.67, lambda: ("rival", rng.randrange(len(RIVALS)), rng.randint(1, world.setup.queue["quota"]), 10)),
        (0.75, lambda: ("rival ends",)),
        (0.82, lambda: ("check", rng.choice(["Ready", "Ready", "Ready", "Retry", "Rejected"]))),
        (0.86, lambda: ("relist", who, "workloads")),
        (0.88, lambda: ("activate", False)),
        (0.91, lambda: ("activate", True)),
        (0.93, lambda: ("stop queues", rng.random() < 0.5)),
        (0.96, lambda: ("queue", rng.choice([*QUEUES, "nope", None]))),
        (0.97, lambda: ("priority", rng.choice([URGENT, None]))),
        (0.985, lambda: ("delete workload",)),
        (1.0, lambda: ("blind", who, rng.random() < 0.5)),
    )
    yield next(step for limit, step in one_of if kind < limit)()


def _controller(rng: random.Random, who: str, calm: bool) -> Iterator[Step]:
    fate = rng.random()
    if calm or fate < (0.7 if who == "a" else 0.25):
        yield ("hear", who)
        yield ("look", who)
    elif fate < 0.8:
        yield ("hear", who, rng.choice(RESOURCES), rng.randint(1, 3))
        yield ("look", who)
    elif fate < 0.85:
        yield ("relist", who, rng.choice(RESOURCES))
    elif fate < 0.9:
        yield ("release", who)
    else:
        yield ("hear", who)
        yield ("look", who, rng.choice(FAULTS), rng.randint(0, 5))


def _life(rng: random.Random, world: World) -> Step:
    """What happens in the life of any job."""
    kind = rng.random()
    if kind < 0.12:
        return ("wait", rng.choice([1, 5, 20, 60, 700]))
    label = _label(rng, world)
    pod = world.api.pod(pod_name(label))
    if kind < 0.2 and pod is not None and pod["status"]["phase"] == "Running":
        return ("exit", label, 0)
    if kind < 0.23:
        return ("collect garbage",)
    return ("kubelet", label)


def _trouble(rng: random.Random, world: World) -> Step:
    label = _label(rng, world)
    kind = rng.random()
    if kind < 0.4:
        code = rng.choice(EXIT_CODES)
        if code == 137 and rng.random() < 0.5:
            return ("exit", label, code, "OOMKilled")
        return ("exit", label, code, "", True) if rng.random() < 0.1 else ("exit", label, code)
    node = rng.choice(NODE_NAMES)
    one_of: tuple[Callable[[], Step], ...] = (
        lambda: ("evict", label),
        lambda: ("reject", label),
        lambda: ("unschedulable", label),
        lambda: ("disrupt", label, rng.choice(sorted(DISRUPTIONS))),
        lambda: ("lose node", node),
        lambda: ("lose node", node),
        lambda: ("node off" if node in world.kubelet.down else "lose node", node),
        lambda: ("remove node" if node in world.kubelet.down else "lose node", node),
        lambda: ("node up", node),
        lambda: ("shut down", node, rng.choice(LAST_CONTAINER)),
        lambda: ("reboot", node, rng.choice(["Unknown", "ContainerStatusUnknown"])),
        lambda: ("collect", node),
        lambda: ("hang", label) if "activeDeadlineSeconds" in world.policy else ("evict", label),
        lambda: ("delete pod", label),
        lambda: ("delete pod", label, 0),
        lambda: ("suspend",),
        lambda: ("resume",),
        lambda: ("backoffLimit", rng.randint(0, 4)),
        lambda: ("edit", *rng.choice(EDITS)),
        lambda: ("delete job",) if rng.random() < 0.3 else ("create job",),
        lambda: ("squat", label),
        lambda: ("step clock", rng.choice(["a", "b", "server"]), rng.choice([-3600, -60, 60, 3600])),
        lambda: ("die", rng.choice(["a", "b"])),
    )
    return rng.choice(one_of)()


def _label(rng: random.Random, world: World) -> str:
    return rng.choice(world.setup.labels)
