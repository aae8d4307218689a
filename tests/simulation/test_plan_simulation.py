"""Random schedules over `plan`: crashes between writes, a second controller that acts on the past, faults of all kinds.

After every step the invariants hold; once the faults stop, the job ends and nothing more is written. A failing seed is
in the test's message: run it alone with `MXJOB_SEED=<seed>`.
"""

import os

import pytest
from plan_world import World

from mxnet_operator.api.conditions import FAILED, SUCCEEDED, is_terminal, is_true
from mxnet_operator.plan import Plan, plan

SCHEDULES = int(os.environ.get("MXJOB_SCHEDULES", "1000"))
FIRST_SEED = int(os.environ.get("MXJOB_SEED", "0"))
STEPS = 60


def run(seed: int) -> World:
    world = World(seed)
    for _ in range(STEPS):
        before = world.job.status
        pods = dict(world.pods)
        step = world.random.random()
        if step < 0.35:
            world.look()
        elif step < 0.45:
            world.look(crash=True)
        elif step < 0.55:
            world.look(stale=True)
        else:
            world.fault()
        check(world, before, set(world.pods) - set(pods), stale=0.45 <= step < 0.55)
    world.settle()
    check_end(world)
    return world


def check(world: World, before: object, created: set[str], *, stale: bool) -> None:
    status = world.job.status
    limit = world.job.spec.run_policy.backoff_limit
    assert limit is not None
    assert not (is_true(status.conditions, SUCCEEDED) and is_true(status.conditions, FAILED))
    assert status.restarts >= before.restarts  # type: ignore[attr-defined]
    assert status.restarts_count_towards_max <= min(limit, len(world.failed_uids)), "counted twice"
    if is_terminal(before):  # type: ignore[arg-type]
        assert status == before
        assert stale or not created
    for spec in world.job.spec.mx_replica_specs.values():
        assert spec.restart_policy != "Never" or status.restarts_count_towards_max == 0


def check_end(world: World) -> None:
    status = world.job.status
    assert is_terminal(status), status
    assert plan(world.job, world.observe(), world.now) == Plan()
    assert not [pod for pod in world.pods.values() if pod.phase in ("Pending", "Running")]
    if world.job.spec.run_policy.clean_pod_policy == "All":
        assert not world.pods


@pytest.mark.timeout(600)
def test_every_schedule_keeps_the_invariants_and_comes_to_an_end() -> None:
    seeds = [FIRST_SEED] if "MXJOB_SEED" in os.environ else range(SCHEDULES)
    ends = {SUCCEEDED: 0, FAILED: 0}
    for seed in seeds:
        try:
            world = run(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        ends[world.job.status.state] += 1
    print(f"{len(seeds)} schedules: {ends}")
    if len(seeds) > 100:
        assert min(ends.values()) > len(seeds) // 10, "the schedules show only one kind of end"
