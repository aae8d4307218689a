"""A test file leaves the product as it found it: what one replaces and forgets fails another, in some order.

pytest's workers run files of several folders in one process, so such a failure depends on how they are dealt out.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

PACKAGES = ("mxnet_operator", "mxnet_provider", "mxnet_argo")
Found = Mapping[tuple[str, str], Any]


def found() -> Found:
    """What the names of the product's imported modules stand for."""
    modules = [(name, module) for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES and module]
    return {(name, attribute): value for name, module in modules for attribute, value in vars(module).items()}


def replaced(before: Found, after: Found) -> list[str]:
    """The names that stand for something else now. One that was set once (`global`) stood for None before."""
    return sorted(
        f"{module}.{name}"
        for (module, name), value in before.items()
        if value is not None and after.get((module, name)) is not value
    )


@pytest.fixture(autouse=True, scope="module")
def product_is_left_as_it_was() -> Iterator[None]:
    before = found()
    yield
    left = replaced(before, found())
    assert not left, f"this file's tests replaced {', '.join(left)} and didn't put it back"
