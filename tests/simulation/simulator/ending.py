"""The end of a schedule: faults stop, one controller leads, and what was begun must come to rest as it should."""

from collections.abc import Iterator

from simulator import truth
from simulator.api import Object
from simulator.kueue import QUEUES, has_quota, is_true
from simulator.lives import owner_of
from simulator.world import World

from mxnet_operator.api import names
from mxnet_operator.api.queue_labels import QUEUE_LABEL

ROUNDS = 400
PATIENCE = 60
"""Rounds until somebody looks after nodes that are lost and names that are taken, if the controller still waits."""


async def settle(world: World) -> str:
    """Let the leader work only when it is called or has set itself a time; return what is wrong meanwhile.

    Kueue is fair: it does what is to be done, and rivals end.
    """
    leader, standby = world.controllers["a"], world.controllers["b"]
    for controller in (leader, standby):
        await controller.release()
        controller.be_blind(False)
    squatters = [pod["metadata"]["name"] for pod in world.api.pods() if not owner_of(pod)]
    if wrong := await _leaves_its_queue(world, squatters):
        return wrong
    await world.do(("resume",))
    for round_ in range(ROUNDS):
        world.api.collector.run()
        leader.hear()
        if leader.is_due:
            await leader.look()
            if round_ > PATIENCE:
                _help(world, squatters)
        elif world.kueue.act():
            pass
        elif wrong := _unanswered(world):
            return wrong
        elif not _pods_go_on(world):
            due = min((each for each in (leader.due, world.kueue.due) if each is not None), default=None)
            if due is not None and round_ <= PATIENCE:
                world.clock.seconds = max(due, world.clock.seconds)
            elif not _help(world, squatters):
                if due is None:
                    return ""
                world.clock.seconds = max(due, world.clock.seconds)
    return "every_job_ends: the controller never comes to rest"


async def _leaves_its_queue(world: World, squatters: list[str]) -> str:
    """Let a job that its user has suspended come to rest, which then is in no queue any more."""
    leader = world.controllers["a"]
    for round_ in range(ROUNDS):
        job = world.job
        if not world.setup.queue or job is None or not truth.asks_to_suspend(job) or truth.is_over(job):
            return ""
        world.api.collector.run()
        leader.hear()
        if leader.is_due:
            await leader.look()
        elif leader.due is not None or world.api.pods():
            moved = sum(world.kubelet.go_on(pod["metadata"]["name"]) for pod in world.api.pods())
            if leader.due is not None and round_ <= PATIENCE:
                world.clock.seconds = max(leader.due, world.clock.seconds)
            elif not moved and not _help_pods(world, squatters):
                return ""
        else:
            in_queue = any(owner_of(each) for each in world.api.queue_workloads())
            return "a_suspended_job_leaves_its_queue: its Workload is still there" if in_queue else ""
    return "a_suspended_job_leaves_its_queue: the controller never comes to rest"


def _unanswered(world: World) -> str:
    """What the leader ought to have done, with nothing left to do, about the job's Workload."""
    job, leader = world.job, world.controllers["a"]
    found = next((each for each in world.api.queue_workloads() if owner_of(each)), None)
    if found is None or job is None or leader.has_failed or truth.is_over(job):
        return ""
    uid = job["metadata"]["uid"]
    pods = [pod for pod in world.api.pods() if owner_of(pod) == uid]
    if has_quota(found) and is_true(found, "Evicted"):
        if not pods and leader.due is None:
            return "an_eviction_is_carried_out: the quota is kept"
        if pods and all("deletionTimestamp" not in pod["metadata"] for pod in pods):
            return f"an_eviction_is_carried_out: {len(pods)} pods are left"
    is_admitted = is_true(found, "Admitted") and not is_true(found, "Evicted")
    if is_admitted and truth.holds(job, "Running") and not is_true(found, "PodsReady"):
        return "kueue_is_told_that_pods_are_ready: it isn't"
    if is_admitted and not truth.holds(job, "Running") and is_true(found, "PodsReady"):
        return "kueue_is_told_that_pods_are_waited_for: it isn't"
    return ""


async def wrong_at_the_end(world: World) -> Iterator[str]:
    """Everything that is wrong with a world that has settled."""
    before = world.changes
    for controller in world.controllers.values():
        controller.hear()
        await controller.look()
        await controller.die()
        controller.hear()
        await controller.look()
    writes = world.changes - before
    found = [f"a_settled_job_is_left_alone: {writes} more writes"] if writes else []
    job = world.job
    found += _left_over(world, job)
    found += _still_queued(world, job)
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
    workloads = (each for each in world.api.queue_workloads() if owner_of(each))
    for child in (*world.api.pods(), *world.api.children(), *workloads):
        if owner_of(child) != uid:
            yield f"nothing_is_left_of_a_deleted_job: {child['metadata']['name']}"


def _still_queued(world: World, job: Object | None) -> Iterator[str]:
    """A job that is over keeps no quota, and one that names no queue has no Workload."""
    for each in world.api.queue_workloads():
        if owner_of(each) and job is not None and not truth.queue_of(job) and not truth.is_over(job):
            yield f"a_job_without_queue_is_in_none: {each['metadata']['name']}"
        if owner_of(each) and not is_true(each, "Finished") and has_quota(each):
            yield f"quota_is_given_back: {each['metadata']['name']} has it"


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
    queue = 4 if world.setup.queue else 0
    budget = pods + group + 8 + queue + world.pauses + (pods + 1 if world.was_unplaced else 0)
    # a gang that gives its room back says so twice, names the pods that don't end, and is made anew
    budget += (truth.restarts(world.job) - truth.counted(world.job)) * (pods + 5)
    if world.writes > budget:
        yield f"the_write_budget_is_kept: {world.writes} writes, the budget is {budget}"


def _help(world: World, squatters: list[str]) -> bool:
    """An administrator frees a name, mends a node, or ends what keeps a queue; False if there is nothing to do."""
    if _help_pods(world, squatters):
        return True
    job = world.job
    if job is not None and truth.queue_of(job) not in ("", *QUEUES):
        world.api.label_job(QUEUE_LABEL, QUEUES[0])
        return True
    return world.kueue.help()


def _help_pods(world: World, squatters: list[str]) -> bool:
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
    return sum(truth.replicas(world, job).values()) - len(done)
