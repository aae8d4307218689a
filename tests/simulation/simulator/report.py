"""What a person is told of a schedule that broke an invariant: the seed, the least it takes, and a test."""

from simulator.run import Result
from simulator.shrink import shrink

REGRESSIONS = "tests/simulation/test_simulation_regressions.py"


def report(seed: int, result: Result) -> str:
    """The failure of a seed, cut down, as text."""
    least = shrink(result)
    schedule = least.schedule.source().replace("\n", "\n    ")
    return (
        f"seed {seed} breaks {least.wrong}\n"
        f"Run it alone: MXJOB_SEED={seed} pytest tests/simulation. Of its {len(result.schedule.steps)} steps these "
        f"{len(least.schedule.steps)} are enough; once mended, keep them in {REGRESSIONS}:\n\n"
        f'def test_say_what_held_again() -> None:\n    schedule = {schedule}\n    assert run(schedule).wrong == ""\n'
    )
