"""Locks on files that tasks and processes exclude each other by; the kernel releases those of a killed process."""

import fcntl
import os
from pathlib import Path


def open_lock(path: Path) -> int:
    """Return a descriptor of a lock's file, which is made where there is none; its folder has to be there."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def lock(descriptor: int) -> None:
    """Wait for the exclusive lock; it is held until the descriptor is closed."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock, exclusive or shared, and return whether it was free."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
