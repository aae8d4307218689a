"""Notices what blocks an event loop: files, sockets, programs and sleeps that our code asks for on it."""

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_WATCHED = (
    "open",
    "os.listdir",
    "os.scandir",
    "subprocess.Popen",
    "time.sleep",
    "socket.connect",
    "socket.getaddrinfo",
)
_OURS = "mxnet_provider"
_active: list["list[str]"] = []
_thread: list[int] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _active or event not in _WATCHED or threading.get_ident() != _thread[-1]:
        return
    if event == "socket.connect" and isinstance(arguments[0], socket.socket) and arguments[0].gettimeout() == 0:
        return  # asyncio's own, which doesn't wait
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and f"/{_OURS}/" not in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is not None:
        _active[-1].append(f"{event}{arguments[:1]!r} from {frame.f_code.co_filename}:{frame.f_lineno}")


_installed: list[bool] = []


@contextlib.contextmanager
def blocking_calls() -> Iterator[list[str]]:
    """The blocking calls that this thread makes on behalf of the provider while the context lasts."""
    if not _installed:
        sys.addaudithook(_hook)  # there is no way to take it out again
        _installed.append(True)
    found: list[str] = []
    _active.append(found)
    _thread.append(threading.get_ident())
    try:
        yield found
    finally:
        _active.pop()
        _thread.pop()
