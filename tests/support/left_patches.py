"""A test file leaves the product as it found it: what one replaces and forgets fails another, in some order.

pytest's workers run files of several folders in one process, so such a failure depends on how they are dealt out. What
programs that a file runs in this process choose for all of it, their logging, is put back.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

PACKAGES = ("mxnet_operator", "mxnet_provider", "mxnet_argo")
Found = Mapping[tuple[str, str], Any]


def found() -> Found:
    """What the names of the product's imported modules stand for."""
    modules = [
        (name, module) for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES and module
    ]
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


@contextlib.contextmanager
def own_logging() -> Iterator[None]:
    """Put the levels of loggers back in the end, and take off the handlers that the root logger got meanwhile."""
    root, before = logging.getLogger(), _levels()
    handlers = list(root.handlers)
    try:
        yield
    finally:
        for logger in _levels():
            logger.setLevel(before.get(logger, logging.NOTSET))
        for handler in [each for each in root.handlers if each not in handlers]:
            root.removeHandler(handler)


def _levels() -> dict[logging.Logger, int]:
    loggers = (each for each in list(logging.root.manager.loggerDict.values()) if isinstance(each, logging.Logger))
    ours = (each for each in loggers if each.name.partition(".")[0] in PACKAGES)
    return {logger: logger.level for logger in (logging.root, *ours)}


@pytest.fixture(autouse=True, scope="module")
def logging_is_put_back() -> Iterator[None]:
    with own_logging():
        yield
