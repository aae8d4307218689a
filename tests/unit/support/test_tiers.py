"""What `make unit` and `make test` leave out of all tests: each has a sibling that runs, and the end says it."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import tiers
from tiers import COLLECTED, NOT_UNIT, OTHER_CELLS, STOOD_FOR, TABLE, Table, covering, siblings, summary

ROOT = Path(__file__).parents[3]
THE_TABLE = Table.read()
NAMED = sorted({*THE_TABLE.siblings, *THE_TABLE.siblings.values(), *THE_TABLE.components.values()})


def test_every_test_that_only_tier_all_runs_has_a_sibling_in_make_test(request: pytest.FixtureRequest) -> None:
    """Of the tests that this run has collected: in CI of all."""
    collected = request.config.stash[COLLECTED]
    files = {item.nodeid.partition("::")[0] for item in collected}
    found = siblings(collected, THE_TABLE)
    without = [
        test
        for test, running in found.items()
        if not running and THE_TABLE.siblings.get(test.partition("[")[0], test).partition("::")[0] in files
    ]
    assert without == []


@pytest.mark.parametrize("name", NAMED)
def test_each_test_that_the_table_names_exists(name: str) -> None:
    path, _, function = name.partition("::")
    assert function in {*functions_in(ROOT / path), ""}, f"{TABLE} names {name}: rename it there too"


@pytest.mark.parametrize("runs", sorted(set(THE_TABLE.siblings.values()) | set(THE_TABLE.components.values())))
def test_what_stands_for_others_or_for_a_component_is_not_left_out(runs: str) -> None:
    assert runs not in THE_TABLE.siblings


@pytest.mark.parametrize("beginning", [*THE_TABLE.cells, *THE_TABLE.unit, *THE_TABLE.not_unit])
def test_each_beginning_in_the_table_is_that_of_a_test(beginning: str) -> None:
    path, _, function = beginning.partition("::")
    assert (ROOT / path).exists()
    assert not function or any(name.startswith(function) for name in functions_in(ROOT / path))


@cache
def functions_in(path: Path) -> set[str]:
    """A file's tests as node ids say them, and its functions by their mere names."""
    tree = ast.parse(path.read_text()) if path.suffix == ".py" else ast.Module([], [])
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in tree.body if isinstance(node, kinds)}
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return found | {f"{each.name}::{node.name}" for each in classes for node in each.body if isinstance(node, kinds)}


TESTS = """
import pytest

@pytest.mark.parametrize("policy", ["never", "always"])
@pytest.mark.parametrize("place", ["start", "end"])
def test_cells(place, policy): pass

@pytest.mark.kubernetes
def test_real(): pass

def test_like_it(): pass
"""
THEIR_TABLE = """
[unit]
run = ["tests/"]
without = []
without-fixtures = []
[cells]
"tests/test_it.py" = "{how}"
[siblings."tests/test_it.py"]
test_like_it = "test_real"
[components]
"""
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs these tests at a tier; `how` is the rule for cells."""

    def run(tier: str, *arguments: str, how: str = "each value") -> pytest.RunResult:
        (pytester.path / "tests").mkdir()
        (pytester.path / "tests" / "test_it.py").write_text(TESTS)
        (pytester.path / "tiers.toml").write_text(THEIR_TABLE.format(how=how))
        pytester.makeini("[pytest]\nmarkers = kubernetes: x\nasyncio_default_fixture_loop_scope = function\n")
        pytester.makeconftest(
            "import pathlib, tiers\npytest_plugins = ['tiers']\n"
            "tiers.TABLE = pathlib.Path(__file__).with_name('tiers.toml')\n"
        )
        monkeypatch.setenv("PYTHONPATH", str(TABLE.parent / "support"))
        monkeypatch.setattr(tiers, "TABLE", TABLE)  # and so set back in this process
        start = pytester.runpytest_subprocess if "-n" in arguments else pytester.runpytest_inprocess
        return start("-v", f"--tier={tier}", *arguments, "tests")

    return run


def ran(done: pytest.RunResult) -> list[str]:
    return sorted(line.split("::")[1].split(" ")[0] for line in done.outlines if "::" in line and "PASSED" in line)


def test_make_test_runs_each_value_once_and_what_stands_for_others(run: Run) -> None:
    done = run("test")
    assert ran(done) == ["test_cells[end-always]", "test_cells[start-never]", "test_real"]
    assert done.outlines[-4:-1] == [
        f"Left out: 1 {STOOD_FOR}",
        f"          2 {OTHER_CELLS}",
        "          `make test TIER=all` runs everything, as CI does",
    ]


def test_one_of_each_function_may_be_enough(run: Run) -> None:
    assert ran(run("test", how="one")) == ["test_cells[start-never]", "test_real"]


def test_make_unit_runs_nothing_that_needs_kubernetes_and_says_so(run: Run) -> None:
    done = run("unit")
    assert ran(done) == ["test_cells[end-always]", "test_cells[start-never]"]
    assert [line for line in done.outlines if "Left out" in line] == [f"Left out: 4 {NOT_UNIT}"]


def test_all_runs_all_and_leaves_nothing_to_say(run: Run) -> None:
    done = run("all")
    done.assert_outcomes(passed=6)
    assert "Left out" not in done.stdout.str()


def test_workers_of_xdist_tell_what_they_left_out(run: Run) -> None:
    done = run("test", "-n", "2")
    assert [line for line in done.outlines if "Left out" in line] == [f"Left out: 1 {STOOD_FOR}"]


def test_a_rule_that_there_is_not_is_named(run: Run) -> None:
    assert "'sometimes' is no way to choose cells" in run("test", how="sometimes").stderr.str()


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        ({"a": {1, 2}, "b": {1}, "c": {3}}, ["a", "c"]),
        ({"a": {1}, "b": {1, 2}, "c": {2}}, ["b"]),
        ({"a": {1}, "b": {1}}, ["a"]),
        ({}, []),
    ],
)
def test_cells_are_kept_until_each_value_occurs(cells: dict[str, set[int]], kept: list[str]) -> None:
    assert covering({name: frozenset(values) for name, values in cells.items()}) == kept


@pytest.mark.parametrize(
    ("tier", "left"), [("unit", {NOT_UNIT: 3, STOOD_FOR: 4, OTHER_CELLS: 5}), ("test", {STOOD_FOR: 4, OTHER_CELLS: 5})]
)
def test_the_end_says_what_was_left_out_in_three_lines(tier: str, left: dict[str, int]) -> None:
    told = list(summary(left, tier))
    assert len(told) <= 3
    assert sum(int(word) for line in told for word in line.split() if word.isdigit()) == sum(left.values())
    assert "make test" in told[-1]
