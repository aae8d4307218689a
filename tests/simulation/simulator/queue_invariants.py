"""What must be true of every write about a job in a queue of Kueue's: docs/kueue.md, and docs/semantics.md, Queues.

As in `invariants`: each is a function of the world and the write that says what is wrong, and a controller is judged by
what it could know when it began to look.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from simulator import truth
from simulator.api import FLAVORS, Object
from simulator.kueue import condition, has_quota, is_true
from simulator.lives import owner_of
from simulator.world import World, Write

from mxnet_operator.api import names
from mxnet_operator.api.queue_labels import QUEUE_LABEL, QUEUE_PRIORITY_LABEL

UNPROVOKED: Final = 4
"""Writes to Workloads that follow from one thing that happens: by two leaders, with one more of each that was held."""
KUEUES = ("Evicted", "Preempted", "DeactivationTarget")
"""Conditions that Kueue alone writes."""


def no_pod_without_quota(world: World, write: Write) -> Iterator[str]:
    """No pod for a job that names a queue before that has admitted it, nor once it wants the quota back."""
    if write.seen is not None and truth.waits_in_queue(world, write.seen):
        yield f"{write.change.object['metadata']['name']} was made for a job that its queue doesn't admit"


def pods_go_where_their_quota_is(world: World, write: Write) -> Iterator[str]:
    """Each pod is for the nodes of the flavor that its quota is of."""
    known = (
        truth.known_workload(world, write.seen) if write.seen is not None and truth.queue_of(write.seen.job) else None
    )
    if known is None:
        return
    sets = ((known.get("status") or {}).get("admission") or {}).get("podSetAssignments") or ()
    pod = write.change.object
    replica_type = pod["metadata"]["labels"].get(names.LABEL_REPLICA_TYPE)
    wanted = next((each["flavors"]["cpu"] for each in sets if each["name"] == replica_type), None)
    found = (pod["spec"].get("nodeSelector") or {}).get("flavor")
    if wanted in FLAVORS and found != wanted:
        yield f"{pod['metadata']['name']} is for nodes {found!r}, its quota is of {wanted!r}"


def quota_is_kept_while_pods_are_left(world: World, write: Write) -> Iterator[str]:
    """Quota goes back once no pod is left, and that of a job that is over once no pod runs.

    But for pods that another leader has made meanwhile, and for a job that has left its queue: it runs without quota.
    """
    before, after = write.change.before, write.change.after
    if (
        before is None
        or write.seen is None
        or not truth.queue_of(write.seen.job)
        or not _holds(before)
        or _holds(after)
    ):
        return
    for pod in world.api.pods():
        life = world.lives.by_uid.get(pod["metadata"]["uid"])
        if life is None or life.owner != owner_of(before) or life.made_at > write.seen.revision:
            continue
        if after is None or not is_true(after, "Finished") or pod["status"]["phase"] in ("Pending", "Running"):
            yield f"the quota of {life.name} was given back before it had gone"


def only_who_leaves_gives_up_the_place(world: World, write: Write) -> Iterator[str]:
    """A Workload is deleted for a job that its user suspends, that leaves its queue or asks for something else."""
    before, after, job = write.change.before, write.change.after, _job_as_asked(world, write)
    if before is None or after is not None or job is None or truth.asks_to_suspend(job):
        return
    if _asks_for(before) == _wants(job) and not is_true(before, "Finished"):
        yield "a job that waits, or was admitted, lost its place in the queue"


def a_workload_asks_for_its_job(world: World, write: Write) -> Iterator[str]:
    """A Workload that is made or changed asks for all pods of the job, in its queue, at its priority.

    None is made for a job that its user suspends, and none changed that has quota.
    """
    before, after = write.change.before, write.change.after
    if after is None or write.seen is None or (before is not None and before["spec"] == after["spec"]):
        return
    job = _job_as_asked(world, write) if before is not None else write.seen.job
    if job is None:
        return
    if before is not None and has_quota(before):
        yield "it has quota, and was changed"
    if truth.asks_to_suspend(job):
        yield "a suspended job entered a queue"
    if _asks_for(after) != _wants(job):
        yield f"it asks for {_asks_for(after)}, the job for {_wants(job)}"
    counts = {each["name"]: each["count"] for each in after["spec"]["podSets"]}
    if counts != {kind.lower(): count for kind, count in world.setup.replicas.items()}:
        yield f"it asks for {counts} pods"


def one_workload_per_job(world: World, write: Write) -> Iterator[str]:
    """A job has one place in one queue."""
    new = write.change.object
    if sum(owner_of(each) == owner_of(new) for each in world.api.queue_workloads()) > 1:
        yield "it is the second one of its job"


def what_kueue_says_is_kept(world: World, write: Write) -> Iterator[str]:
    """A controller takes back no eviction, and reserves and admits nothing."""
    before, after = write.change.before, write.change.after
    if before is None or after is None:
        return
    for kind in KUEUES:
        if condition(before, kind) != condition(after, kind):
            yield f"the condition {kind} was changed"
    for kind in ("QuotaReserved", "Admitted"):
        if is_true(after, kind) and not is_true(before, kind):
            yield f"{kind} was made true"


def pods_ready_means_that_all_have_started(world: World, write: Write) -> Iterator[str]:
    """PodsReady: each replica's process has run in this attempt."""
    before, after = write.change.before, write.change.after
    if (
        before is None
        or after is None
        or write.seen is None
        or is_true(before, "PodsReady")
        or not is_true(after, "PodsReady")
    ):
        return
    lives = truth.attempt_of(world, write.seen.job)
    if not world.restarts_as_gang:
        lives = world.lives.of(owner_of(after))
    started = {(life.type, life.index) for life in lives if life.started}
    missing = sum(truth.replicas(world, write.seen.job).values()) - len(started)
    if missing:
        yield f"all pods are said to be ready, and {missing} replicas have not started"


def writes_are_few(world: World, write: Write) -> Iterator[str]:
    """A change of anything is followed by a few writes to Workloads, and not by ever more of them."""
    if world.unprovoked > UNPROVOKED:
        yield f"{world.unprovoked} writes to Workloads followed from nothing new"


def a_job_has_its_whole_time_to_be_ready(world: World, write: Write) -> Iterator[str]:
    """Kueue evicts no job for not being ready sooner than `timeout`, or `recovery`, after it was admitted."""
    before, after = write.change.before, write.change.after
    if before is None or after is None or world.clock.off:
        return
    told = condition(after, "Evicted")
    if told == condition(before, "Evicted") or told.get("reason") != "PodsReadyTimeout":
        return
    had = _time(told) - _time(condition(before, "Admitted"))
    least = min(world.setup.queue[each] for each in ("timeout", "recovery") if each in world.setup.queue)
    if had.total_seconds() < least:
        yield f"the job was evicted {had} after it was admitted: the Workload did not say that it starts anew"


def admitted_is_what_kueue_says(world: World, write: Write) -> Iterator[str]:
    """The job's condition Admitted is true while its Workload's is, and no eviction is under way."""
    before, after = write.change.before, write.change.after
    if (
        write.seen is None
        or truth.is_over(after)
        or truth.holds(before, "Admitted")
        or not truth.holds(after, "Admitted")
    ):
        return
    if truth.waits_in_queue(world, write.seen):
        yield "the job says that it is admitted"


def only_what_had_begun_is_given_up(world: World, write: Write) -> Iterator[str]:
    """An attempt of which nothing ever existed is not given up for a job that waits: nothing would be restarted."""
    before, after = write.change.before, write.change.after
    if before is None or write.seen is None or truth.restarts(after) == truth.restarts(before):
        return
    waits = truth.waits_in_queue(world, write.seen) or truth.asks_to_suspend(write.seen.job)
    lives = world.lives.of(before["metadata"]["uid"])
    if waits and not any(life.attempt == truth.restarts(before) for life in lives) and world.restarts_as_gang:
        yield f"attempt {truth.restarts(before)} was given up, and had no pods"


def _job_as_asked(world: World, write: Write) -> Object | None:
    """The job that a controller asked the server for before it wrote; None where it is gone."""
    if (
        write.seen is None or write.by is None or write.by.held
    ):  # Held: the job may have changed since it was asked for.
        return write.seen.job if write.seen is not None else None
    job = world.job
    return job if job is not None and job["metadata"]["uid"] == write.seen.job["metadata"]["uid"] else None


def _holds(workload: Object | None) -> bool:
    """Whether a Workload takes quota from others."""
    return workload is not None and has_quota(workload) and not is_true(workload, "Finished")


def _asks_for(workload: Object) -> tuple[str, str]:
    spec = workload["spec"]
    ref = spec.get("priorityClassRef") or {}
    return spec["queueName"], ref.get("name", "")


def _wants(job: Object) -> tuple[str, str]:
    labels = job["metadata"].get("labels") or {}
    return labels.get(QUEUE_LABEL, ""), labels.get(QUEUE_PRIORITY_LABEL, "")


def _time(told: Object) -> datetime:
    return datetime.fromisoformat(told["lastTransitionTime"])
