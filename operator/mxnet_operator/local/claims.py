"""Exclusive claims of a running cluster: the lock of its home, and its range of loopback addresses.

Both are locks on files, the kernel's to release, so a cluster that was killed leaves no stale claim.
"""

import errno
import fcntl
import hashlib
import os
import socket
import time
from pathlib import Path


def open_lock(path: Path) -> int:
    """Return a descriptor of a lock's file, which is made where there is none; its folder has to be there."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock, exclusive or shared, and return whether it was free."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


CLAIM_PORT = 19091
"""Port whose use claims a subnet; below the ephemeral range, so that no other process gets it by chance."""

FIRST_SUBNET, LAST_SUBNET = 16, 254
"""Second bytes of the subnets; 127.0.0.0/12 is left out, since name resolvers and others listen there."""


class AlreadyRunningError(Exception):
    """The cluster of this home is running, starting or stopping."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"the local cluster is already running (pid {pid or 'unknown'})")
        self.pid = pid


class NoFreeSubnetError(Exception):
    """Every range of loopback addresses is taken."""


class HomeLock:
    """Exclusive flock on `<home>/cluster/lock`, held from construction to `close`."""

    def __init__(self, path: Path, *, patience: float = 0.5) -> None:
        """Take the lock, or raise AlreadyRunningError after `patience` seconds, longer than `lock_holder` probes."""
        self._path, self._descriptor = path, open_lock(path)
        give_up = time.monotonic() + patience
        while not try_lock(self._descriptor):
            if time.monotonic() >= give_up:
                pid = _read_pid(self._descriptor)
                os.close(self._descriptor)
                raise AlreadyRunningError(pid)
            time.sleep(0.02)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        """Release the lock; the file stays, since unlinking it would let two processes lock two files of one name."""
        os.close(self._descriptor)

    def is_there(self) -> bool:
        """Whether the lock file still is the one of its path, where others look for it."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False


def lock_holder(path: Path) -> int | None:
    """Return the process id of the running cluster; None if none runs.

    Raises:
        OSError: the lock can't be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if try_lock(descriptor, shared=True) else _read_pid(descriptor)
    finally:
        os.close(descriptor)


def claim_subnet(home: Path) -> tuple[str, socket.socket]:
    """Claim a /16 of loopback addresses such as "127.77" for this home; returns it with the socket that holds it.

    A home gets its last range again unless another cluster, of any user, took it meanwhile.

    Raises:
        NoFreeSubnetError: all are taken, or a process listens on CLAIM_PORT of every address.
    """
    count = LAST_SUBNET - FIRST_SUBNET + 1
    start = int.from_bytes(hashlib.sha256(bytes(home)).digest()[:4], "big") % count
    for step in range(count):
        subnet = f"127.{FIRST_SUBNET + (start + step) % count}"
        claim = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            claim.bind((f"{subnet}.0.1", CLAIM_PORT))
            claim.listen(1)
        except OSError as error:
            claim.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return subnet, claim
    raise NoFreeSubnetError(f"no free range of loopback addresses: port {CLAIM_PORT} is taken on all of them")


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 20, 0)
    return int(text) if text.isdigit() else None
