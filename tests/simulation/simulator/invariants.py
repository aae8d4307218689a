"""What must be true of every single write, whatever happened before it: `docs/semantics.md`, and more.

Each is a function of the world and the write that says what is wrong, or nothing. They read the API server's objects
and what really happened to pods (`lives`), never the operator's own reading of either.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec
from simulator import queue_invariants as queue
from simulator import truth
from simulator.api import CHILDREN, NAMESPACE, PODS, SERVICES, Object
from simulator.lives import Life, owner_of
from simulator.schedule import pod_name
from simulator.truth import conditions, first_attempt, holds, is_over, restarts, status_of
from simulator.world import World, Write, is_started

from mxnet_operator.api import names
from mxnet_operator.integrations.gangs import coscheduling

Invariant = Callable[[World, Write], Iterator[str]]
TOUCHED_AT_MOST_EVERY: Final = timedelta(seconds=30)


def one_pod_per_replica(world: World, write: Write) -> Iterator[str]:
    """At most one pod per job, type and index."""
    new = world.lives.by_uid.get(write.change.object["metadata"]["uid"])
    for pod in world.api.pods():
        other = world.lives.by_uid.get(pod["metadata"]["uid"])
        if new is None or other is None or new is other:
            continue
        if (new.owner, new.type, new.index) == (other.owner, other.type, other.index):
            yield f"{new.name} is a second pod for the replica of {other.name}"


def attempts_do_not_overlap(world: World, write: Write) -> Iterator[str]:
    """No pod of attempt k+1 while one of attempt k exists, unless a leader with an old view made that in between."""
    new = world.lives.by_uid.get(write.change.object["metadata"]["uid"])
    if new is None or not world.restarts_as_gang:
        return
    for pod in world.api.pods():
        old = world.lives.by_uid.get(pod["metadata"]["uid"])
        if old is not None and old.owner == new.owner and old.attempt < new.attempt and not old.is_late:
            yield f"{new.name} of attempt {new.attempt} was made beside {old.name} of attempt {old.attempt}"


def nothing_is_made_after_the_end(world: World, write: Write) -> Iterator[str]:
    """A controller that knows that the job is over creates nothing."""
    if write.seen is not None and is_over(write.seen.job):
        yield f"{write.change.object['metadata']['name']} was made for a job that is over"


def replicas_are_asked_for(world: World, write: Write) -> Iterator[str]:
    """No pod for an index that the job doesn't ask for, and each with its owner."""
    new = write.change.object
    life = world.lives.by_uid.get(new["metadata"]["uid"])
    if life is None or write.seen is None or life.owner != write.seen.job["metadata"]["uid"]:
        yield f"{new['metadata']['name']} doesn't belong to the job that it was made for"
    elif life.index >= truth.replicas(world, write.seen.job).get(life.type, 0):
        yield f"{life.name} is no replica of the job"
    elif life.attempt > restarts(write.seen.job):
        yield f"{life.name} is of attempt {life.attempt} already"


def what_is_done_is_not_run_again(world: World, write: Write) -> Iterator[str]:
    """No pod for an index that the creator knew to be completed, nor for a suspended job."""
    life = world.lives.by_uid.get(write.change.object["metadata"]["uid"])
    if life is None or write.seen is None:
        return
    job = write.seen.job
    if life.index in truth.indexes(truth.completed(world, job).get(life.type, "")):
        yield f"{life.name} was done, and was made again"
    if truth.asks_to_suspend(job):
        yield f"{life.name} was made for a suspended job"
    for other in truth.attempt_of(world, job):
        was_seen = write.seen.pods.get(other.uid, 0) >= other.since
        if other.end == "done" and was_seen and (other.type, other.index) == (life.type, life.index):
            yield f"{life.name} was seen to be done, and was made again"


def nobody_joins_a_gang_that_has_ended(world: World, write: Write) -> Iterator[str]:
    """ps-lite: once a member of an attempt is known to have ended, the attempt gets no new ones.

    Unless its creator could not know that the gang's first replica, which is made last, ever existed: before it does,
    nobody has joined, and what exits with 0 needs no others.
    """
    new = world.lives.by_uid.get(write.change.object["metadata"]["uid"])
    if new is None or write.seen is None or not world.restarts_as_gang:
        return
    seen = write.seen
    for other in truth.attempt_of(world, seen.job):
        if other.end == "done" and not _knew_of_root(world, write, new):
            continue
        if other.end in ("done", "exit") and seen.pods.get(other.uid, 0) >= other.since:
            yield f"{write.change.object['metadata']['name']} joined a gang whose {other.name} had ended"
    done = any(truth.completed(world, seen.job).values())
    if done and _knew_of_root(world, write, new):
        yield f"{write.change.object['metadata']['name']} joined a gang of which some were done"


def nobody_joins_a_running_gang_alone(world: World, write: Write) -> Iterator[str]:
    """ps-lite: a member that went gets no successor in an attempt whose members had all been there and one still runs.

    Its creator is judged if it saw the pods that are left, and a status was written since the gang's first replica was
    made: a controller that died between the two leaves no trace of a first replica that goes before anybody looks.
    """
    new = world.lives.by_uid.get(write.change.object["metadata"]["uid"])
    if new is None or write.seen is None or not world.restarts_as_gang:
        return
    attempt = [life for life in world.lives.of(new.owner) if life.attempt == new.attempt and life.uid != new.uid]
    were_there = {(life.type, life.index) for life in attempt}
    all_were_there = len(were_there) == sum(truth.replicas(world, write.seen.job).values())
    left = [pod["metadata"]["uid"] for pod in world.api.pods()]
    running = [life for life in attempt if life.uid in left and life.started and not life.end]
    saw_all = all(write.seen.pods.get(life.uid, 0) >= life.started_at for life in running)
    if all_were_there and running and saw_all and _knew_of_root(world, write, new):
        yield f"{new.name} is alone with {running[0].name}, which had met its predecessor"


def _knew_of_root(world: World, write: Write, new: Life) -> bool:
    """Return whether the creator of a pod saw its gang's first replica, or a status was written since that was made."""
    name, seen = pod_name(world.setup.labels[0]), write.seen
    roots = [life for life in world.lives.of(new.owner) if (life.attempt, life.name) == (new.attempt, name)]
    return any(life.uid in world.told_of or (seen is not None and life.uid in seen.pods) for life in roots)


def services_come_first(world: World, write: Write) -> Iterator[str]:
    """Names resolve before pods start: no pod without a Service, unless one went since its creator began to look."""
    owner, seen = owner_of(write.change.object), write.seen
    if seen is None or seen.children["services"] or any(owner_of(each) == owner for each in world.api.services()):
        return
    if world.gone_until.get((owner, SERVICES.key), 0) <= seen.revision:
        yield f"{write.change.object['metadata']['name']} was made before the Services"


def groups_come_first(world: World, write: Write) -> Iterator[str]:
    """A pod of a gang says of which group it is, and the group is there.

    Unless the group went, or the job that hadn't begun was edited, since its creator looked.
    """
    pod, seen = write.change.object, write.seen
    name = (pod["metadata"].get("labels") or {}).get(coscheduling.LABEL)
    if seen is None or (not world.restarts_as_gang and not world.setup.tunes):
        return
    if sum(truth.replicas(world, seen.job).values()) < 2:
        return
    job = world.job
    if job is not None and not is_started(job) and int(job["metadata"]["resourceVersion"]) > seen.revision:
        return
    if name is None:
        yield f"{pod['metadata']['name']} of a gang is in no group"
    owner, key = owner_of(pod), world.api.resource_of(CHILDREN[-1]).key
    if seen.children["podgroups"] or any(owner_of(group) == owner for group in world.api.groups()):
        return
    if world.gone_until.get((owner, key), 0) <= seen.revision:
        yield f"{pod['metadata']['name']} was made before its group"


def only_own_children_are_touched(world: World, write: Write) -> Iterator[str]:
    """Nothing is changed or deleted but what belongs to the job that was looked at, by uid."""
    before = write.change.before
    if before is None or write.seen is None:
        return
    if owner_of(before) != write.seen.job["metadata"]["uid"]:
        yield f"{before['metadata']['name']} belongs to somebody else"


def only_waiting_gangs_are_touched(world: World, write: Write) -> Iterator[str]:
    """A pod group is touched only while no pod of its gang has a node, and not twice in half a minute.

    A leader that hasn't heard of the last touch may touch it again.
    """
    before, after, seen = write.change.before, write.change.after, write.seen
    if before is None or after is None or seen is None or _touched(before) == _touched(after):
        return
    owner = owner_of(after)
    for pod in world.api.pods():
        version = seen.pods.get(pod["metadata"]["uid"])
        if (
            owner_of(pod) == owner
            and pod["spec"].get("nodeName")
            and version == int(pod["metadata"]["resourceVersion"])
        ):
            yield f"{pod['metadata']['name']} has a node"
    heard = write.by and write.by.feeds[CHILDREN[-1].resource.plural].cache.version(
        f"{NAMESPACE}/{before['metadata']['name']}"
    )
    if heard != before["metadata"]["resourceVersion"]:
        return
    last, now = _touched(before), _touched(after)
    if last is not None and now is not None and not world.clock.off and now < last + TOUCHED_AT_MOST_EVERY:
        yield f"it was changed at {last}, and again at {now}"


def _touched(group: Object) -> datetime | None:
    written = (group["metadata"].get("annotations") or {}).get(names.TOUCHED_ANNOTATION)
    return None if written is None else datetime.fromisoformat(written)


def counted_before_it_is_deleted(world: World, write: Write) -> Iterator[str]:
    """A pod is deleted or stopped only once the status says that its attempt, or the job, is over."""
    before = write.change.before
    if before is None or write.by is None or not _was_ended(write):
        return
    life, job = world.lives.by_uid.get(before["metadata"]["uid"]), world.job
    if life is None or job is None or job["metadata"]["uid"] != life.owner or is_over(job):
        return
    if world.restarts_as_gang:
        if life.attempt >= restarts(job):
            yield f"{life.name} of the running attempt was deleted"
    elif life.uid not in world.condemned and life.attempt >= first_attempt(job):
        yield f"{life.name} was deleted and is not being replaced"


def only_what_cannot_run_is_deleted_by_force(world: World, write: Write) -> Iterator[str]:
    """A pod that has a node, and has not ended, goes at once only if its node is off; else it may still run."""
    before = write.change.before
    if before is None or write.change.after is not None or write.by is None or write.change.resource != PODS.key:
        return
    node = before["spec"].get("nodeName", "")
    may_run = before["status"]["phase"] in ("Pending", "Running") and not world.kubelet.is_off(node)
    if node and may_run and not write.by.held:  # Held: the node may have come back since it was asked after.
        yield f"{before['metadata']['name']} was deleted by force, and may still run on {node}"


def a_terminal_status_is_for_ever(world: World, write: Write) -> Iterator[str]:
    """No condition, count or time of a finished job changes, but for what says that its clean-up fails."""
    before, after = write.change.before, write.change.after
    if (
        before is not None
        and after is not None
        and is_over(before)
        and _terminal_status(before) != _terminal_status(after)
    ):
        yield f"the status of a finished job changed: {status_of(before)} -> {status_of(after)}"


def _terminal_status(job: Object) -> Object:
    told = [each for each in status_of(job).get("conditions") or () if each["type"] != "ReconcileError"]
    return {**status_of(job), "conditions": told}


def conditions_do_not_contradict(world: World, write: Write) -> Iterator[str]:
    """Succeeded or Failed, never both; and a finished job doesn't run, restart, or lack its time."""
    job = write.change.after
    if holds(job, "Succeeded") and holds(job, "Failed"):
        yield "Succeeded and Failed at once"
    if is_over(job) and (holds(job, "Running") or holds(job, "Restarting")):
        yield "a finished job is still Running or Restarting"
    if is_over(job) != ("completionTime" in status_of(job)):
        yield "completionTime and the terminal condition don't go together"
    if holds(job, "Running") and holds(job, "Restarting"):
        yield "Running and Restarting at once"


def state_sums_up_the_conditions(world: World, write: Write) -> Iterator[str]:
    """`state` is the weightiest condition that holds."""
    job = write.change.after
    order = ("Failed", "Succeeded", "Suspended", "Restarting", "Running", "Created")
    wanted = next((each for each in order if holds(job, each)), "")
    if status_of(job).get("state", "") != wanted:
        yield f"state is {status_of(job).get('state')!r}, the conditions say {wanted!r}"


def transition_times_tell_of_flips(world: World, write: Write) -> Iterator[str]:
    """A condition's lastTransitionTime changes with its status only."""
    old, new = conditions(write.change.before), conditions(write.change.after)
    for kind in old.keys() & new.keys():
        same_status = old[kind]["status"] == new[kind]["status"]
        if same_status and old[kind]["lastTransitionTime"] != new[kind]["lastTransitionTime"]:
            yield f"{kind} did not flip, but its lastTransitionTime changed"


def only_the_status_is_written(world: World, write: Write) -> Iterator[str]:
    """What the user asks for is the user's."""
    before, after = write.change.before, write.change.after
    if write.by is not None and before is not None and after is not None and before["spec"] != after["spec"]:
        yield "a controller changed the spec"


def counters_only_rise(world: World, write: Write) -> Iterator[str]:
    """Attempts rise one by one, counted failures with them; and a stored count is never taken back."""
    before, after = write.change.before, write.change.after
    if before is None or after is None:
        return
    step, failures = restarts(after) - restarts(before), truth.counted(after) - truth.counted(before)
    if step not in (0, 1) or failures < 0 or (failures and not step):
        yield f"restarts rose by {step}, the count towards backoffLimit by {failures}"


def each_failure_counts_once(world: World, write: Write) -> Iterator[str]:
    """A restart counts exactly the failures that were seen: each pod's once, a gang's first as one."""
    before, after = write.change.before, write.change.after
    if before is None or after is None or restarts(after) == restarts(before):
        return
    failures = truth.counted(after) - truth.counted(before)
    ended = truth.ended_and_seen(world, write)
    there_were = sum(life.counts for life in truth.decisive(world, ended))
    if world.restarts_as_gang:
        there_were = min(there_were, 1)
    waits = truth.asks_to_suspend(before) or (write.seen is not None and truth.waits_in_queue(world, write.seen))
    if not holds(after, "Restarting") or holds(before, "Suspended") or waits:
        there_were = min(there_were, failures)  # Suspended in the same moment: the attempt ends for that.
    if failures != there_were:
        yield f"{failures} failures were counted where {there_were} had been seen"
    if failures:
        counted = {life.uid for life in truth.decisive(world, ended) if life.counts}
        if again := counted & world.counted:
            yield f"the failure of {world.lives.by_uid[again.pop()].name} was counted again"
        world.counted |= counted


def backoff_limit_is_kept(world: World, write: Write) -> Iterator[str]:
    """No restart beyond backoffLimit."""
    before, after = write.change.before, write.change.after
    limit = int(((after or {}).get("spec", {}).get("runPolicy") or {}).get("backoffLimit", 6))
    if truth.counted(after) > max(limit, truth.counted(before)):
        yield f"{truth.counted(after)} restarts count, backoffLimit is {limit}"


def what_is_final_is_not_retried(world: World, write: Write) -> Iterator[str]:
    """A permanent exit code, or any failure under Never, that was seen fails the job; in a gang the first decides."""
    before, after = write.change.before, write.change.after
    if before is None or after is None or restarts(after) == restarts(before):
        return
    ended = truth.ended_and_seen(world, write)
    for life in truth.decisive(world, ended):
        if truth.is_final(world, life):
            yield f"{life.name} failed for good ({life.end} {life.code} {life.reason}) and was restarted"


def a_job_fails_for_a_reason(world: World, write: Write) -> Iterator[str]:
    """Failed: a final failure, or one beyond backoffLimit, or a deadline that is over."""
    before, after = write.change.before, write.change.after
    if after is None or holds(before, "Failed") or not holds(after, "Failed"):
        return
    ended = truth.ended_and_seen(world, write)
    policy = after["spec"].get("runPolicy") or {}
    limit = int(policy.get("backoffLimit", 6))
    failures = sum(life.counts for life in truth.decisive(world, ended))
    if world.restarts_as_gang:
        failures = min(failures, 1)
    beyond = failures > 0 and truth.counted(after) + failures > limit
    is_lost = world.setup.restart == "Never"  # One that is simply gone is final, too.
    has_deadline = truth.may_miss_deadlines(after)
    decisive = truth.decisive(world, ended)
    is_final = any(truth.is_final(world, life) for life in decisive)
    if not (beyond or is_lost or has_deadline or is_final):
        yield f"the job failed without need: {conditions(after)['Failed']['message']}"


def a_sound_attempt_goes_on(world: World, write: Write) -> Iterator[str]:
    """What is torn down, or fails, has lost a pod: one has ended, is being deleted, isn't there, or has no node."""
    before, after = write.change.before, write.change.after
    if before is None or after is None or truth.asks_to_suspend(before) or truth.may_miss_deadlines(after):
        return
    if write.seen is not None and truth.waits_in_queue(world, write.seen):
        return
    if restarts(after) == restarts(before) and holds(before, "Failed") == holds(after, "Failed"):
        return
    pods = {pod["metadata"]["uid"]: pod["metadata"] for pod in world.api.pods()}
    lives = truth.attempt_of(world, before)
    are_there = [life for life in lives if life.uid in pods and "deletionTimestamp" not in pods[life.uid]]
    if len(are_there) == sum(truth.replicas(world, before).values()) and not any(life.end for life in lives):
        if world.restarts_as_gang and (_is_half_placed(world, are_there) or (write.by is not None and write.by.held)):
            return  # It gives back what it holds; held: it may have been placed since its pods were asked for.
        yield "an attempt was given up though every pod of it was well"


def _is_half_placed(world: World, lives: list[Life]) -> bool:
    nodes = [pod["spec"].get("nodeName") for life in lives if (pod := world.api.pod(life.name)) is not None]
    return any(nodes) and not all(nodes)


def fewer_workers_are_those_with_a_node(world: World, write: Write) -> Iterator[str]:
    """An attempt keeps its number of Workers; fewer it has as minWorkers allows, as many as got a node before."""
    before, after = write.change.before, write.change.after
    was, is_now = (status_of(each).get("fewerReplicas") or {} for each in (before, after))
    if before is None or was == is_now:
        return
    if restarts(after) == restarts(before) and not holds(after, "Suspended"):
        yield f"an attempt with {was} went on with {is_now}"
    if not is_now or (write.by is not None and write.by.held):  # Held: others may have been placed since.
        return
    least, whole = world.policy_of(before).get("minWorkers", 99), truth.replicas(world, before)["Worker"]
    workers = {life.name for life in truth.attempt_of(world, before) if life.type == "Worker"}
    pods = [pod for pod in map(world.api.pod, workers) if pod is not None]
    placed = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    if is_now != {"Worker": placed} or not least <= placed < whole or restarts(before) <= first_attempt(before):
        yield f"{placed} of {whole} Workers had a node, minWorkers is {least}, and the next attempt has {is_now}"


def running_means_that_all_have_started(world: World, write: Write) -> Iterator[str]:
    """Running: each replica's process has run in this attempt."""
    before, after = write.change.before, write.change.after
    if after is None or holds(before, "Running") or not holds(after, "Running"):
        return
    lives = truth.attempt_of(world, after)
    if not world.restarts_as_gang:
        lives = world.lives.of(after["metadata"]["uid"])
    started = {(life.type, life.index) for life in lives if life.started}
    missing = sum(truth.replicas(world, after).values()) - len(started)
    if missing:
        yield f"the job is Running and {missing} replicas have not started"


def success_is_earned(world: World, write: Write) -> Iterator[str]:
    """Succeeded: every replica that decides has ended with exit 0, in one attempt where the gang restarts.

    A replica that has, and was made again by a controller that could not know, may fail then: it is done. Once all
    Workers are done, a Scheduler or Server that is taken away doesn't take the success back.
    """
    before, after = write.change.before, write.change.after
    if after is None or holds(before, "Succeeded") or not holds(after, "Succeeded"):
        return
    lives = world.lives.of(after["metadata"]["uid"])
    if world.restarts_as_gang:
        lives = [life for life in lives if life.attempt == restarts(after)]
    done = {life.name for life in lives if life.end == "done"}
    needed = msgspec.structs.replace(world.setup, replicas=truth.replicas(world, after))
    workers_are_done = all(pod_name(label) in done for label in needed.labels if label.startswith("worker-"))
    for label in needed.deciders:
        if label.startswith("scheduler-") and workers_are_done:
            continue  # It goes on for a minute; `tests/unit/plan/test_scheduler_grace.py` has the times.
        if pod_name(label) not in done:
            yield f"the job succeeded without {label}"
    for life in truth.ended_and_seen(world, write):
        is_needless = workers_are_done and life.type in ("Scheduler", "Server") and life.end != "exit"
        if truth.is_final(world, life) and life.name not in done and not is_needless:
            yield f"the job succeeded though {life.name} had failed for good"


def suspended_means_no_pods(world: World, write: Write) -> Iterator[str]:
    """Suspended is said once no pod that its writer knew of is left, and then there is no startTime."""
    before, after = write.change.before, write.change.after
    if after is None or not holds(after, "Suspended"):
        return
    if "startTime" in status_of(after) and not is_over(after):
        yield "a suspended job has a startTime"
    if not holds(before, "Suspended") and write.seen is not None and write.seen.pods:
        yield f"the job is Suspended and still has {len(write.seen.pods)} pods"


def a_start_lasts(world: World, write: Write) -> Iterator[str]:
    """startTime stays until a suspension takes it away, and a job with a status that isn't suspended has one."""
    old, new = status_of(write.change.before).get("startTime"), status_of(write.change.after).get("startTime")
    if old and new and old != new:
        yield f"startTime moved from {old} to {new}"
    if old and not new and not holds(write.change.after, "Suspended"):
        yield "startTime went without a suspension"


def _was_ended(write: Write) -> bool:
    """Whether the write deletes or stops its object."""
    before, after = write.change.before or {}, write.change.after
    if after is None or ("deletionTimestamp" in after["metadata"] and "deletionTimestamp" not in before["metadata"]):
        return True
    return bool(after["spec"].get("activeDeadlineSeconds") != before["spec"].get("activeDeadlineSeconds"))


OF_NEW_PODS: tuple[Invariant, ...] = (
    one_pod_per_replica,
    attempts_do_not_overlap,
    nothing_is_made_after_the_end,
    replicas_are_asked_for,
    what_is_done_is_not_run_again,
    nobody_joins_a_gang_that_has_ended,
    nobody_joins_a_running_gang_alone,
    services_come_first,
    groups_come_first,
    queue.no_pod_without_quota,
    queue.pods_go_where_their_quota_is,
)
OF_CHILDREN: tuple[Invariant, ...] = (
    only_own_children_are_touched,
    only_waiting_gangs_are_touched,
    counted_before_it_is_deleted,
    only_what_cannot_run_is_deleted_by_force,
)
OF_JOBS: tuple[Invariant, ...] = (
    a_terminal_status_is_for_ever,
    conditions_do_not_contradict,
    state_sums_up_the_conditions,
    transition_times_tell_of_flips,
    only_the_status_is_written,
    counters_only_rise,
    each_failure_counts_once,
    backoff_limit_is_kept,
    what_is_final_is_not_retried,
    a_job_fails_for_a_reason,
    a_sound_attempt_goes_on,
    fewer_workers_are_those_with_a_node,
    running_means_that_all_have_started,
    success_is_earned,
    suspended_means_no_pods,
    a_start_lasts,
    queue.admitted_is_what_kueue_says,
    queue.only_what_had_begun_is_given_up,
)
OF_NEW_WORKLOADS: tuple[Invariant, ...] = (
    nothing_is_made_after_the_end,
    queue.one_workload_per_job,
    queue.a_workload_asks_for_its_job,
    queue.writes_are_few,
)
OF_WORKLOADS: tuple[Invariant, ...] = (
    only_own_children_are_touched,
    queue.quota_is_kept_while_pods_are_left,
    queue.only_who_leaves_gives_up_the_place,
    queue.a_workload_asks_for_its_job,
    queue.what_kueue_says_is_kept,
    queue.pods_ready_means_that_all_have_started,
    queue.writes_are_few,
)
OF_KUEUES_WRITES: tuple[Invariant, ...] = (queue.a_job_has_its_whole_time_to_be_ready,)


def broken(world: World, write: Write) -> Iterator[str]:
    """Every invariant that a write breaks, as `name: what is wrong`."""
    for invariant in _asked(world, write):
        for wrong in invariant(world, write):
            yield f"{invariant.__name__}: {wrong}"


def _asked(world: World, write: Write) -> tuple[Invariant, ...]:
    change, is_new = write.change, write.change.before is None
    if change.resource == world.api.jobs.key:
        return OF_JOBS if change.before is not None and change.after is not None else ()
    if change.resource == world.api.workloads.key:
        by_controller = OF_NEW_WORKLOADS if is_new else OF_WORKLOADS
        return OF_KUEUES_WRITES if write.by is None else by_controller
    if write.by is None or change.resource not in world.api.child_keys:
        return ()
    if not is_new:
        return OF_CHILDREN
    if change.resource != PODS.key:
        return (nothing_is_made_after_the_end,)
    return OF_NEW_PODS
