"""Random schedules of events, faults and second leaders over the real controller and the in-memory API.

Some seeds are the same in every run of the tests, twice as many are fresh: pytest's header says where those begin, and
`MXJOB_FRESH_SEED` sets it. A failing seed is printed with the least that it takes to fail: `MXJOB_SEED=<seed>` runs it
alone, `MXJOB_SCHEDULES=<n>` so many of the first and twice as many of the others, and `make simulate N=<n>` runs
many on all cores.
"""

import os
from collections import Counter
from collections.abc import Sequence

import pytest
from fresh_seeds import drawn, first_fresh_seed
from simulator.report import report
from simulator.run import run, run_seed
from simulator.schedule import Schedule, Setup
from simulator.shrink import shrink

from mxnet_operator.plan import failures

SCHEDULES = 500
"""How many with TIER=all where MXJOB_SCHEDULES does not say it; fewer else."""
ASKED_FOR = os.environ.get("MXJOB_SCHEDULES")
SEED = os.environ.get("MXJOB_SEED")
PATIENCE = max(1800, int(ASKED_FOR or 0) // 2)


@pytest.fixture
def schedules() -> int:
    """How many fixed seeds to try; of the fresh ones twice as many."""
    return int(ASKED_FOR or drawn(SCHEDULES, SCHEDULES // 25))


@pytest.mark.timeout(PATIENCE)
def test_every_schedule_keeps_the_invariants_and_comes_to_rest(schedules: int) -> None:
    _keep_the_invariants(range(schedules) if SEED is None else [int(SEED)])


@pytest.mark.skipif(SEED is not None, reason="MXJOB_SEED runs one seed alone")
@pytest.mark.timeout(PATIENCE)
def test_every_schedule_of_fresh_seeds_keeps_the_invariants_and_comes_to_rest(schedules: int) -> None:
    _keep_the_invariants(range(first_fresh_seed(), first_fresh_seed() + 2 * schedules))


def _keep_the_invariants(seeds: Sequence[int]) -> None:
    ends: Counter[str] = Counter()
    for seed in seeds:
        result = run_seed(seed)
        assert not result.wrong, report(seed, result)
        ends[result.state] += 1
    print(f"{len(seeds)} schedules from seed {seeds[0]}: {dict(ends)}")
    if len(seeds) > 100:
        assert min(ends["Succeeded"], ends["Failed"], ends[""]) > len(seeds) // 20, "schedules of one kind only"


def test_a_failing_schedule_is_cut_down_until_nothing_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "is_retryable", lambda *_: True)
    broken = "what_is_final_is_not_retried"
    seed, result = next((seed, r) for seed in range(1000) if (r := run_seed(seed)).invariant == broken)
    least = shrink(result)
    assert least.invariant == broken
    for number in range(len(least.schedule.steps)):
        steps = least.schedule.steps[:number] + least.schedule.steps[number + 1 :]
        assert not run(Schedule(setup=least.schedule.setup, steps=steps)).wrong
    told = report(seed, result)
    assert f"seed {seed} breaks {broken}: " in told
    assert f"MXJOB_SEED={seed}" in told
    monkeypatch.undo()
    source = told[told.index("Schedule(") : told.index("    assert run")]
    assert not run(eval(source, {"Schedule": Schedule, "Setup": Setup})).wrong
