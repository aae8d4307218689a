"""What keeps a test run honest: an old wheel stops it, and a hanging test ends.

- An event loop may swallow pytest-timeout's signal, never a cancellation: asynchronous tests are cancelled.
- pytest's workers run files of several folders in one process: what a file's programs choose for logging is put back.
- Tests run against the installed wheel: where that is older than the checkout, pytest stops and says so.
- What tests start takes Ctrl-C and a closed terminal as usual, though the run itself ignores them.
"""

import asyncio
import contextlib
import functools
import importlib.util
import inspect
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import SECONDS

_AT_MOST = 3 * SECONDS
"""For one test: a wait that has failed has been said by its own guard long before."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Guard each coroutine; a mark `timeout` says how long, as it does for other tests."""
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            mark = item.get_closest_marker("timeout")
            item.obj = _guarded(item.obj, float(mark.args[0]) if mark and mark.args else _AT_MOST)


def _guarded(test: Callable[..., Awaitable[None]], seconds: float) -> Callable[..., Awaitable[None]]:
    @functools.wraps(test)
    async def guarded(*args: Any, **kwargs: Any) -> None:
        guard = asyncio.timeout(seconds)
        try:
            async with guard:
                await test(*args, **kwargs)
        except TimeoutError:
            if guard.expired():
                pytest.fail(f"it hung for {seconds:g} s: cancelled")
            raise

    return guarded


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


def _handle_ignored_signals() -> None:
    """Ignore by a handler what was ignored: only handlers are reset in the programs that are started.

    A shell has what it puts behind ignore SIGINT, and `nohup` SIGHUP; programs inherit that, and `mxjob` keeps to it.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "mxnet_operator": ROOT / "operator" / "mxnet_operator",
    "mxnet_provider": ROOT / "mxnet_provider",
    "mxnet_argo": ROOT / "argo" / "mxnet_argo",
}


def installed(package: str) -> Path | None:
    """Where a package is imported from; None if that is no installed wheel: the folder itself."""
    spec = importlib.util.find_spec(package)
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    return folder if folder is not None and "site-packages" in folder.parts else None


def differences(checkout: Path, wheel: Path) -> Iterator[str]:
    """The files of a package that the wheel lacks, has beyond, or has with another content."""
    ours, theirs = _files(checkout), _files(wheel)
    yield from sorted(
        name
        for name in ours | theirs
        if name not in ours or name not in theirs or (checkout / name).read_bytes() != (wheel / name).read_bytes()
    )


def _files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix() for path in found}


def pytest_configure(config: pytest.Config) -> None:
    """Stop before anything is tested against an old wheel."""
    _handle_ignored_signals()
    if hasattr(config, "workerinput"):
        return
    for package, checkout in PACKAGES.items():
        wheel = installed(package)
        stale = next(differences(checkout, wheel), None) if wheel is not None else None
        if stale is not None:
            message = (
                f"{(checkout / stale).relative_to(ROOT)} is not what is installed, and tests run against that: "
                "run make install"
            )
            raise pytest.UsageError(message)
