"""Run a schedule, and say what it broke."""

import asyncio
import functools
import gc
from collections.abc import Iterator
from typing import Any

import msgspec
from simulator.draw import draw_setup, draw_steps
from simulator.ending import settle, wrong_at_the_end
from simulator.invariants import broken
from simulator.schedule import Schedule, Step
from simulator.truth import status_of
from simulator.world import World, Write


class Result(msgspec.Struct, frozen=True):
    """What came of a schedule."""

    schedule: Schedule
    wrong: str = ""
    """The first invariant that broke and how; empty where all held."""
    state: str = ""
    """How the job ended; empty where it is gone."""

    @property
    def invariant(self) -> str:
        return self.wrong.partition(":")[0]


def run(schedule: Schedule) -> Result:
    """Run the steps of a schedule and let it settle."""
    return _in_loop(_run(schedule, iter(schedule.steps)))


def run_seed(seed: int) -> Result:
    """Draw a schedule while it runs, so that each step can be one that makes sense, and say what it was."""
    setup, calm, rng = draw_setup(seed)
    try:
        return _in_loop(_run(Schedule(setup=setup, steps=(), calm=calm), None, draw_steps(rng, calm)))
    except Exception as e:
        e.add_note(f"seed {seed}: MXJOB_SEED={seed} pytest tests/simulation")
        raise


async def _run(schedule: Schedule, steps: Iterator[Step] | None, drawn: Any = None) -> Result:
    wrong: list[str] = []

    def watch(world: World, write: Write) -> None:
        wrong.extend(broken(world, write))

    world = World(schedule, watch)
    done: list[Step] = []
    try:
        for step in steps if steps is not None else drawn(world):
            done.append(step)
            await world.do(step)
            if wrong:
                break
        if not wrong and (unsettled := await settle(world)):
            wrong.append(unsettled)
        if not wrong:
            wrong.extend(await wrong_at_the_end(world))
        state = status_of(world.job).get("state", "")
    finally:
        await world.close()
    ran = msgspec.structs.replace(schedule, steps=tuple(done))
    return Result(ran, wrong[0] if wrong else "", state)


@functools.cache
def _runner() -> asyncio.Runner:
    gc.freeze()  # What is there by now stays; going through it again and again took a tenth of the time.
    return asyncio.Runner()


def _in_loop(coroutine: Any) -> Result:
    result: Result = _runner().run(coroutine)
    return result
