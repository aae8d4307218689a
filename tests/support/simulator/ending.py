"""The end of a schedule: faults stop, one controller leads, and what was begun must come to rest as it should."""

from collections.abc import Iterator

from simulator import truth
from simulator.api import Object
from simulator.lives import owner_of
from simulator.world import World

from mxnet_operator.api import names

ROUNDS = 400
PATIENCE = 60
"""Rounds until somebody looks after nodes that are lost and names that are taken, if the controller still waits."""


async def settle(world: World) -> bool:
    """Let the leader work only when it is called or has set itself a time; False if it never comes to rest."""
    leader, standby = world.controllers["a"], world.controllers["b"]
    for controller in (leader, standby):
        await controller.release()
    await world.do(("resume",))
    squatters = [pod["metadata"]["name"] for pod in world.api.pods() if not owner_of(pod)]
    for round_ in range(ROUNDS):
        world.api.collector.run()
        leader.hear()
        if leader.is_due:
            await leader.look()
            if round_ > PATIENCE:
                _help(world, squatters)
        elif not _pods_go_on(world):
            if leader.due is not None and round_ <= PATIENCE:
                world.clock.seconds = max(leader.due, world.clock.seconds)
            elif not _help(world, squatters):
                if leader.due is None:
                    return True
                world.clock.seconds = max(leader.due, world.clock.seconds)
    return False


async def wrong_at_the_end(world: World) -> Iterator[str]:
    """Everything that is wrong with a world that has settled."""
    before = world.api.store.storage.revision
    for controller in world.controllers.values():
        controller.hear()
        await controller.look()
        await controller.die()
        await controller.look()
    writes = world.api.store.storage.revision - before
    found = [f"a_settled_job_is_left_alone: {writes} more writes"] if writes else []
    job = world.job
    found += _left_over(world, job)
    if job is not None and "ttlSecondsAfterFinished" in world.policy and truth.is_over(job):
        found.append("a_finished_job_is_deleted_in_time: it is still there")
    if job is not None:
        found += _unfinished(world, job)
        found += _not_cleaned_up(world, job)
    if world.calm:
        found += _too_many_writes(world)
    return iter(found)


def _left_over(world: World, job: Object | None) -> Iterator[str]:
    uid = job["metadata"]["uid"] if job is not None else ""
    for child in (*world.api.pods(), *world.api.children()):
        if owner_of(child) != uid:
            yield f"nothing_is_left_of_a_deleted_job: {child['metadata']['name']}"


def _unfinished(world: World, job: Object) -> Iterator[str]:
    if not truth.is_over(job):
        yield f"every_job_ends: it is {truth.status_of(job).get('state', '')!r} for ever"


def _not_cleaned_up(world: World, job: Object) -> Iterator[str]:
    policy = world.policy.get("cleanPodPolicy", "None")
    pods = [pod for pod in world.api.pods() if owner_of(pod)]
    unfinished = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in ("Pending", "Running")]
    if truth.is_over(job) and unfinished:
        yield f"what_is_over_is_stopped: {', '.join(unfinished)}"
    if truth.is_over(job) and policy == "All" and pods:
        yield f"clean_pod_policy_is_kept: All, and {len(pods)} pods are left"
    if truth.is_over(job) and world.api.groups():
        yield "a_finished_job_has_no_group: it is left"
    if truth.is_over(job) and policy != "None" and world.api.services():
        yield f"clean_pod_policy_is_kept: {policy}, and the Services are left"


def _too_many_writes(world: World) -> Iterator[str]:
    pods = sum(world.setup.replicas.values())
    group = 1 if pods > 1 else 0
    budget = pods + group + 8 + world.pauses + (pods + 1 if world.was_unplaced else 0)
    # a gang that gives its room back says so twice, names the pods that don't end, and is made anew
    budget += (truth.restarts(world.job) - truth.counted(world.job)) * (pods + 5)
    if world.writes > budget:
        yield f"the_write_budget_is_kept: {world.writes} writes, the budget is {budget}"


def _help(world: World, squatters: list[str]) -> bool:
    """An administrator frees a name or mends a node; False if there is nothing to do."""
    if squatters:
        world.kubelet.delete(squatters.pop(), grace=0)
        return True
    for node in sorted(world.kubelet.down):
        world.kubelet.collect(node)
        world.kubelet.up(node)
        return True
    return False


def _pods_go_on(world: World) -> bool:
    """One step of all pods: by themselves, or a gang that is complete ends well; False if nothing moves."""
    moved = [world.kubelet.go_on(pod["metadata"]["name"]) for pod in world.api.pods()]
    if any(moved):
        world.clock.seconds += 1
        return True
    running = [pod for pod in world.api.pods() if world.kubelet.runs(pod)]
    if names.TUNER in world.setup.replicas:  # Tracker and servers never end by themselves.
        running = [pod for pod in running if pod["metadata"]["name"].startswith("job-tuner-")]
    elif world.restarts_as_gang and (len(running) < _still_needed(world) or _hangs(world, *running)):
        return False
    running = [pod for pod in running if not _hangs(world, pod)]
    for pod in running:
        world.kubelet.exit(pod["metadata"]["name"], 0)
    return bool(running)


def _hangs(world: World, *pods: Object) -> bool:
    return any(pod["metadata"]["uid"] in world.kubelet.hanging for pod in pods)


def _still_needed(world: World) -> int:
    """How many members a gang needs to go on: all whose end nobody has seen as a success."""
    job = world.job
    done = {(life.type, life.index) for life in truth.attempt_of(world, job) if life.end == "done"}
    return sum(world.setup.replicas.values()) - len(done)
