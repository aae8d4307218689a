"""The mistakes of `make mutants` are mistakes in the code of today; some are made here, to see that they are caught."""

from pathlib import Path

import pytest
from simulator.mutated import judge, occurrences
from simulator.mutations import MUTATIONS, Mutation

SOME = {
    "restart a permanent exit code": {"what_is_final_is_not_retried", "success_is_earned"},
    "delete the running attempt": {"counted_before_it_is_deleted"},
    "forget completionTime": {"there_is_one_verdict"},
}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mistake_still_applies_at_one_place(mutation: Mutation) -> None:
    assert occurrences(mutation) == 1, f"write it anew against {mutation.file}"
    assert mutation.old != mutation.new


def test_no_two_mistakes_are_the_same() -> None:
    assert len({(each.file, each.old, each.new) for each in MUTATIONS}) == len(MUTATIONS) >= 25
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize("name", SOME)
def test_the_simulation_catches_a_mistake(name: str, tmp_path: Path) -> None:
    mutation = next(each for each in MUTATIONS if each.name == name)
    assert judge(mutation, tmp_path, schedules=300, unit_tests=False).invariant in SOME[name]


def test_the_simulation_finds_nothing_in_an_unchanged_copy(tmp_path: Path) -> None:
    unchanged = Mutation("none", "plan/decide.py", "def plan(", "def plan(")
    assert judge(unchanged, tmp_path, schedules=30, unit_tests=False).invariant == ""
