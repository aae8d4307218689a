"""The mistakes of `make mutants` are mistakes in the code of today; some are made here, to see that they are caught."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from simulator.mutants import main
from simulator.mutated import Result, judge, occurrences
from simulator.mutations import MUTATIONS, Mutation
from simulator.mutations_outside import OUTSIDE
from tiers import Table

ALL = (*MUTATIONS, *OUTSIDE)

SOME = {
    "restart a permanent exit code": {"what_is_final_is_not_retried", "success_is_earned"},
    "delete the running attempt": {"counted_before_it_is_deleted"},
    "forget completionTime": {"conditions_do_not_contradict"},
    "give quota back while pods are terminating": {"quota_is_kept_while_pods_are_left"},
    "let younger jobs pass a gang that comes first": {"an_older_gang_comes_first"},
}


@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.name)
def test_a_mistake_still_applies_at_one_place(mutation: Mutation) -> None:
    assert occurrences(mutation) == 1, f"write it anew against {mutation.file}"
    assert mutation.old != mutation.new


def test_the_test_that_a_mistake_names_runs_in_make_test() -> None:
    assert not {mutation.test.partition("[")[0] for mutation in ALL} & Table.read().siblings.keys()


def test_no_two_mistakes_are_the_same() -> None:
    assert len({(each.file, each.old, each.new) for each in ALL}) == len(ALL) >= 25
    assert len({each.name for each in ALL}) == len(ALL)


@pytest.mark.parametrize("name", SOME)
def test_the_simulation_catches_a_mistake(name: str, tmp_path: Path) -> None:
    mutation = next(each for each in MUTATIONS if each.name == name)
    assert judge(mutation, tmp_path, schedules=300, unit_tests=False).invariant in SOME[name]


def test_the_simulation_finds_nothing_in_an_unchanged_copy(tmp_path: Path) -> None:
    unchanged = Mutation("none", "plan/decide.py", "def plan(", "def plan(")
    assert judge(unchanged, tmp_path, schedules=30, unit_tests=False).invariant == ""


@pytest.mark.parametrize("mutation", [each for each in ALL if each.test], ids=lambda mutation: mutation.name)
def test_a_mistake_that_names_a_test_fails_it(mutation: Mutation, tmp_path: Path) -> None:
    assert judge(mutation, tmp_path, schedules=0, unit_tests=False).is_caught


def test_a_test_that_does_not_fail_or_is_not_there_catches_nothing(tmp_path: Path) -> None:
    known = next(each for each in MUTATIONS if each.test).test
    for number, test in enumerate((known, f"{known}_any_more")):
        unchanged = Mutation("none", "plan/decide.py", "def plan(", "def plan(", test)
        assert not judge(unchanged, tmp_path / str(number), schedules=0, unit_tests=False).is_caught


@pytest.mark.parametrize(
    ("test", "result", "code"),
    [
        ("", {"invariant": "each_failure_counts_once"}, 0),
        ("", {"unit_test": "test_some"}, 1),
        ("tests/unit::test_its", {"fails_its_test": True}, 0),
        ("tests/unit::test_its", {"invariant": "each_failure_counts_once"}, 1),
        ("tests/unit::test_its", {}, 1),
    ],
)
def test_make_mutants_ends_with_0_where_each_mistake_is_caught_by_what_is_declared(
    test: str, result: dict[str, Any], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mutation = msgspec.structs.replace(MUTATIONS[0], test=test)
    monkeypatch.setattr("simulator.mutants.MUTATIONS", (mutation,))
    monkeypatch.setattr("simulator.mutants.OUTSIDE", ())
    monkeypatch.setattr("simulator.mutants.judge", lambda *_: Result(mutation, **result))
    monkeypatch.setattr("sys.argv", ["mutants"])
    assert main() == code
    assert (f"not caught by {test or 'the simulation'}" in capsys.readouterr().err) == bool(code)
