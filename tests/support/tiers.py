"""Tiers: `make unit`, `make test`, and `make test TIER=all`, which runs everything.

Two marks say what only TIER=all runs. `exhaustive` marks a whole test. `sampled` marks a parametrised test of which
one cell runs in every tier, or the cells that the mark names; the others become `exhaustive`.
"""

from pathlib import Path
from typing import Any

import pytest

TIERS = {
    "unit": "not exhaustive and not kubernetes",
    "test": "not exhaustive",
    "all": "",
}
"""Each tier's expression for pytest's -m."""
_ONLY_ALL = ("tests/node",)
"""Folders of which the other tiers run nothing, and which they do not import."""


def tier_of(config: pytest.Config) -> str:
    """The tier that was asked for; all, where none was."""
    return config.getoption("--tier") or "all"


def asked_for(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """The values of a parameter of this file's tests that run, for a fixture that prepares them together."""
    items = (item for item in request.session.items if item.path == request.path)
    callspecs = (getattr(item, "callspec", None) for item in items)
    return [each.params[parameter] for each in callspecs if each is not None and parameter in each.params]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --tier."""
    parser.addoption("--tier", choices=TIERS, help="run `make unit`'s tests, `make test`'s, or all that CI runs")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Deselect by pytest's own -m what the tier leaves out, in xdist's workers too."""
    expressions = [each for each in (TIERS[tier_of(config)], config.option.markexpr) if each]
    config.option.markexpr = " and ".join(f"({each})" for each in expressions)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import what the tier runs nothing of."""
    folders = (config.rootpath / each for each in _ONLY_ALL)
    return True if tier_of(config) != "all" and collection_path in folders else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cells of sampled tests that only TIER=all runs."""
    seen: set[str] = set()
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            function, _, cell = item.nodeid.partition("[")
            if cell.removesuffix("]") not in mark.args if mark.args else function in seen:
                item.add_marker("exhaustive")
            seen.add(function)
