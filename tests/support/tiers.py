"""Tiers: which tests `make unit` and `make test` run of all that `make test TIER=all` runs; tests/tiers.toml decides.

A test that is left out is deselected, never skipped. It always has a sibling that runs: another cell of the same
function, or the test that the table names. Without `--tier` everything runs that pytest was asked for.
"""

import dataclasses
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

TIERS = ("unit", "test", "all")
TABLE = Path(__file__).resolve().parents[1] / "tiers.toml"
OTHER_CELLS = "other values of parameters of tests that ran"
STOOD_FOR = "tests for which another on the same component ran"
NOT_UNIT = "tests that need MXNet, TVM, Airflow at work, Argo, a control plane or `mxjob` as a process"
COLLECTED = pytest.StashKey[list[pytest.Item]]()
Cell = TypeVar("Cell")
_LEFT = pytest.StashKey[Counter[str]]()


@dataclasses.dataclass(frozen=True)
class Table:
    """tests/tiers.toml: `unit` is the tests of `make unit`, the rest is what `make test` leaves out.

    `cells` maps a file or function to how its cells are chosen, and `siblings` a function to that which runs instead.
    """

    unit: tuple[str, ...]
    not_unit: tuple[str, ...]
    not_unit_fixtures: frozenset[str]
    cells: Mapping[str, str]
    siblings: Mapping[str, str]
    components: Mapping[str, str]

    @classmethod
    def read(cls, path: Path | None = None) -> "Table":
        """Parse the table."""
        table = tomllib.loads((path or TABLE).read_text())
        siblings = {
            f"{file}::{left_out}": runs if ".py::" in runs else f"{file}::{runs}"
            for file, tests in table["siblings"].items()
            for left_out, runs in tests.items()
        }
        unit = table["unit"]
        return cls(
            tuple(unit["run"]),
            tuple(unit["without"]),
            frozenset(unit["without-fixtures"]),
            table["cells"],
            siblings,
            table["components"],
        )


def tier_of(config: pytest.Config) -> str:
    """The tier that was asked for; all, where none was."""
    return config.getoption("--tier") or "all"


def function_of(item: pytest.Item) -> str:
    """The item's node id without its parameters."""
    return item.nodeid.partition("[")[0]


def left_out(items: Sequence[pytest.Item], table: Table, tier: str) -> dict[str, list[pytest.Item]]:
    """Deselected items by reason, of all that were collected."""
    left: dict[str, list[pytest.Item]] = {}
    if tier == "all":
        return left
    if tier == "unit":
        left[NOT_UNIT] = [item for item in items if not _is_unit(item, table)]
        items = [item for item in items if _is_unit(item, table)]
    left[STOOD_FOR] = [item for item in items if function_of(item) in table.siblings]
    groups: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        rule = _rule(item, table)
        if rule and function_of(item) not in table.siblings:
            key, how = rule
            groups[key if how == "each value" else function_of(item), how].append(item)
    left[OTHER_CELLS] = [item for (_, how), cells in groups.items() for item in _other_cells(cells, how)]
    return {reason: found for reason, found in left.items() if found}


def _is_unit(item: pytest.Item, table: Table) -> bool:
    return (
        item.nodeid.startswith(table.unit)
        and not item.nodeid.startswith(table.not_unit)
        and item.get_closest_marker("kubernetes") is None
        and not table.not_unit_fixtures.intersection(getattr(item, "fixturenames", ()))
    )


def _rule(item: pytest.Item, table: Table) -> tuple[str, str] | None:
    """The longest key of the table's cells that the item's node id begins with, and its rule."""
    keys = [key for key in table.cells if item.nodeid.startswith(key)]
    return (key := max(keys, key=len), table.cells[key]) if keys else None


def _other_cells(cells: Sequence[pytest.Item], how: str) -> list[pytest.Item]:
    """The cells to leave out; one of each function stays."""
    if how == "one":
        kept = [next((item for item in cells if item.get_closest_marker("kubernetes") is None), cells[0])]
    elif how == "each value":
        kept = covering({item: frozenset(_values(item)) for item in cells})
    else:
        message = f"{TABLE.name}: {how!r} is no way to choose cells"
        raise pytest.UsageError(message)
    return [item for item in cells if item not in kept]


def covering(cells: Mapping[Cell, frozenset[Any]]) -> list[Cell]:
    """A few cells in which each value that any cell has occurs: greedily, the first of equals."""
    kept: list[Cell] = []
    missing = frozenset[Any]().union(*cells.values())
    while missing:
        best = max(cells, key=lambda cell: len(cells[cell] & missing))
        kept.append(best)
        missing -= cells[best]
    return kept


def _values(item: pytest.Item) -> Iterator[tuple[str, object]]:
    """What a cell shows: its function, and each parameter with its value.

    Of a dataclass each field is a value, of a name like `never-137-worker` each part.
    """
    yield "", function_of(item)
    callspec = getattr(item, "callspec", None)
    for name, value in (callspec.params if callspec else {}).items():
        if dataclasses.is_dataclass(value):
            yield from ((field.name, repr(getattr(value, field.name))) for field in dataclasses.fields(value))
        elif isinstance(value, str):
            yield from ((f"{name} {number}", part) for number, part in enumerate(value.split("-")))
        else:
            yield name, repr(value)


def asked_for(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """The values of a parameter of this file's tests that run, for a fixture that prepares them together."""
    items = (item for item in request.session.items if item.path == request.path)
    callspecs = (getattr(item, "callspec", None) for item in items)
    return [each.params[parameter] for each in callspecs if each is not None and parameter in each.params]


def siblings(items: Sequence[pytest.Item], table: Table) -> dict[str, list[str]]:
    """For each test that only TIER=all runs, the tests of `make test` that show the same of the same component."""
    left = [item for found in left_out(items, table, "test").values() for item in found]
    out = set(left)
    running: dict[str, list[str]] = defaultdict(list)
    for item in items:
        if item not in out:
            running[function_of(item)].append(item.nodeid)
    return {item.nodeid: running[table.siblings.get(function_of(item), function_of(item))] for item in left}


@pytest.fixture
def everything(pytestconfig: pytest.Config) -> bool:
    """Whether this run leaves nothing out, for a test that is one function but many cases."""
    return tier_of(pytestconfig) == "all"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --tier."""
    parser.addoption("--tier", choices=TIERS, help="run `make unit`'s tests, `make test`'s, or all that CI runs")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave alone what `make unit` runs nothing of: importing tests takes seconds."""
    if tier_of(config) != "unit" or not collection_path.is_relative_to(config.rootpath / "tests"):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix() + ("/" if collection_path.is_dir() else "")
    return None if any(path.startswith(each) or each.startswith(path) for each in Table.read().unit) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the tier leaves out."""
    config.stash[COLLECTED] = list(items)
    table = Table.read()
    left = left_out(items, table, tier_of(config))
    out = {item for found in left.values() for item in found}
    config.stash[_LEFT] = Counter({reason: len(found) for reason, found in left.items()})
    if out:
        config.hook.pytest_deselected(items=list(out))
        items[:] = [item for item in items if item not in out]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker of xdist counted: the main process collects nothing."""
    counted = getattr(node, "workeroutput", {}).get("left_out")
    if counted:
        node.config.stash[_LEFT] = Counter(counted)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts from a worker of xdist to the main process."""
    if hasattr(session.config, "workeroutput"):
        left: Counter[str] = session.config.stash.get(_LEFT, Counter())
        session.config.workeroutput["left_out"] = dict(left)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was left out and how to run it."""
    left: Counter[str] = config.stash.get(_LEFT, Counter())
    for line in summary(left, tier_of(config)):
        terminalreporter.write_line(line)


def summary(left: Mapping[str, int], tier: str) -> Iterable[str]:
    """Three lines at most: how many tests were left out for each reason, and how to run them."""
    if not left:
        return
    if tier == "unit":
        left = {NOT_UNIT: sum(left.values())}
    reasons = [reason for reason in (NOT_UNIT, STOOD_FOR, OTHER_CELLS) if left.get(reason)]
    for number, reason in enumerate(reasons):
        yield f"{'Left out: ' if not number else '          '}{left[reason]} {reason}"
    more = "`make test` runs one of each kind, " if tier == "unit" else ""
    yield f"          {more}`make test TIER=all` runs everything, as CI does"
