"""What is drawn at random is another in each run of all tests, in CI too, and the same again with its seed."""

from pathlib import Path

import fresh_seeds
import pytest

DRAWS = """
from hypothesis import given, settings, strategies

def test_that_draws():
    drawn = []

    @settings(database=None)
    @given(strategies.integers(0, 10**9))
    def draw(number):
        drawn.append(number)

    draw()
    print("drawn:", hash(tuple(drawn)))

def test_that_takes_long():
    assert settings().deadline is None
"""


def drawn(pytester: pytest.Pytester, seed: int) -> str:
    """What the tests of a run in CI with this seed drew."""
    environment = {
        "PYTHONPATH": str(Path(fresh_seeds.__file__).parent),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CI": "true",
        "MXJOB_FRESH_SEED": str(seed),
    }
    plugins = ("-p", "_hypothesis_pytestplugin", "-p", "tiers", "-p", "fresh_seeds")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        done = pytester.runpytest_subprocess("-s", "--tier=all", *plugins)
    done.assert_outcomes(passed=2)
    return next(line for line in done.outlines if "drawn:" in line)


def test_runs_in_ci_draw_what_their_seeds_say(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_drawing=DRAWS)
    assert drawn(pytester, 5) == drawn(pytester, 5) != drawn(pytester, 6)
