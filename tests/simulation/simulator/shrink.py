"""Cut a failing schedule down: as few steps as still break the same invariant, of the simplest job."""

from collections.abc import Iterator

import msgspec
from simulator.run import Result, run
from simulator.schedule import Schedule, Step


def shrink(result: Result) -> Result:
    """The smallest failing schedule that leaving things out leads to: without any part of it, the invariant holds."""
    best = result
    while True:
        smaller = next((r for s in _smaller(best.schedule) if (r := run(s)).invariant == result.invariant), None)
        if smaller is None:
            return best
        best = smaller


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Schedules with something left out, first those with much."""
    steps = schedule.steps
    size = len(steps)
    while size:
        for start in range(0, len(steps), size):
            yield msgspec.structs.replace(schedule, steps=steps[:start] + steps[start + size :])
        size //= 2
    for number, step in enumerate(steps):
        for simpler in _simpler(step):
            yield msgspec.structs.replace(schedule, steps=(*steps[:number], simpler, *steps[number + 1 :]))
    setup = schedule.setup
    for field in setup.policy:
        policy = {key: value for key, value in setup.policy.items() if key != field}
        yield msgspec.structs.replace(schedule, setup=msgspec.structs.replace(setup, policy=policy))
    if setup.queue:
        yield msgspec.structs.replace(schedule, setup=msgspec.structs.replace(setup, queue={}))
    for field in sorted(setup.queue.keys() - {"quota"}):
        queue = {key: value for key, value in setup.queue.items() if key != field}
        yield msgspec.structs.replace(schedule, setup=msgspec.structs.replace(setup, queue=queue))
    for kind, count in setup.replicas.items():
        if count > 1:
            replicas = {**setup.replicas, kind: count - 1}
            yield msgspec.structs.replace(schedule, setup=msgspec.structs.replace(setup, replicas=replicas))


def _simpler(step: Step) -> Iterator[Step]:
    match step:
        case ("look", who, _, _):
            yield ("look", who)
        case ("hear", who, _, _):
            yield ("hear", who)
        case (what, "b", *how):
            yield (what, "a", *how)
        case ("wait", seconds) if seconds > 1:
            yield ("wait", 1)
