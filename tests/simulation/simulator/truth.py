"""Small readings of jobs and of what really happened, which the invariants share; none of it is the operator's code."""

from simulator.api import Object
from simulator.controller import Seen
from simulator.kueue import is_true
from simulator.lives import Life
from simulator.world import World, Write

from mxnet_operator.api.queue_labels import QUEUE_LABEL

PERMANENT = frozenset({1, 2, 126, 127, 128, 139})
RETRYABLE = frozenset({130, 134, 137, 138, 143})


def status_of(job: Object | None) -> Object:
    return (job or {}).get("status") or {}


def conditions(job: Object | None) -> dict[str, Object]:
    return {condition["type"]: condition for condition in status_of(job).get("conditions") or ()}


def holds(job: Object | None, condition: str) -> bool:
    return conditions(job).get(condition, {}).get("status") == "True"


def is_over(job: Object | None) -> bool:
    return holds(job, "Succeeded") or holds(job, "Failed")


def restarts(job: Object | None) -> int:
    return int(status_of(job).get("restarts", 0))


def first_attempt(job: Object | None) -> int:
    """The first attempt whose pods are kept where replicas restart one by one."""
    return int(status_of(job).get("firstAttempt", 0))


def counted(job: Object | None) -> int:
    return int(status_of(job).get("restartsCountTowardsMax", 0))


def asks_to_suspend(job: Object) -> bool:
    return bool((job["spec"].get("runPolicy") or {}).get("suspend"))


def queue_of(job: Object) -> str:
    """The queue that a job names; empty where it names none."""
    return str((job["metadata"].get("labels") or {}).get(QUEUE_LABEL) or "")


def known_workload(world: World, seen: Seen) -> Object | None:
    """The job's Workload as a controller knew it; None where it knew of none."""
    return world.workloads.get(seen.workload)


def waits_in_queue(world: World, seen: Seen) -> bool:
    """Whether a job's queue doesn't let it run, by what a controller knew."""
    if not world.setup.queue or not queue_of(seen.job):
        return False
    known = known_workload(world, seen)
    return known is None or not is_true(known, "Admitted") or is_true(known, "Evicted") or is_true(known, "Finished")


def may_miss_deadlines(job: Object) -> bool:
    policy = job["spec"].get("runPolicy") or {}
    return "activeDeadlineSeconds" in policy or "progressDeadlineSeconds" in policy


def indexes(text: str) -> set[int]:
    """`0-2,5` as a set."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def completed(world: World, job: Object) -> dict[str, str]:
    """The indexes of each type that are not run again; a suspended job that starts as a gang begins with all."""
    if world.restarts_as_gang and holds(job, "Suspended"):
        return {}
    return status_of(job).get("completedIndexes") or {}


def replicas(world: World, job: Object | None) -> dict[str, int]:
    """How many replicas of each type the attempt has that a job's status is at."""
    return {**world.setup.replicas, **status_of(job).get("fewerReplicas", {})}


def attempt_of(world: World, job: Object | None) -> list[Life]:
    """The pods of the attempt that a job's status is at: the gang's, or those not being replaced."""
    if job is None:
        return []
    lives = world.lives.of(job["metadata"]["uid"])
    if world.restarts_as_gang:
        return [life for life in lives if life.attempt == restarts(job)]
    given_up = status_of(job).get("restartingPods") or ()
    return [life for life in lives if life.attempt >= first_attempt(job) and life.uid not in given_up]


def ended_and_seen(world: World, write: Write) -> list[Life]:
    """Of the attempt that a status write is about, the ended pods whose end its writer had seen."""
    seen = write.seen.pods if write.seen is not None else {}
    pods = attempt_of(world, write.change.before)
    return [life.as_of(seen[life.uid]) for life in pods if life.end and seen.get(life.uid, 0) >= life.since]


def decisive(world: World, ended: list[Life]) -> list[Life]:
    """Those whose end decides: in a gang the first to fail, as far as their seconds tell; the rest follows from it."""
    failed = [life for life in ended if life.end != "done"]
    if not world.restarts_as_gang or not failed:
        return failed
    first = min(life.at for life in failed)
    return [life for life in failed if life.at == first]


def is_final(world: World, life: Life) -> bool:
    """Whether the end of a pod must not be tried again, by the table of docs/semantics.md."""
    if life.end in ("", "done"):
        return False
    if world.setup.restart == "Never":
        return True
    if world.setup.restart != "ExitCode" or life.end != "exit":
        return False
    listed = world.policy.get("exitCodes") or {}
    if life.code in listed.get("permanent", ()):
        return True
    if life.code in listed.get("retryable", ()):
        return False
    return life.code not in RETRYABLE or life.reason == "OOMKilled"
