"""Runs one container of an Argo pod as a child of its own: own root, mounts, process ids and user; needs root.

Started as a program, with a JSON description on the command line; ends as the container does (128 + n for signal n).
Its root has nothing but what is mounted: the pod's volumes, and what stands for its image.
"""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG = 1
DEVICES = ("null", "zero", "urandom")
libc = ctypes.CDLL(None, use_errno=True)


def checked(result: Any, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: Any, target: Any, kind: str | None, flags: int) -> None:
    encoded = [None if each is None else str(each).encode() for each in (source, target, kind)]
    checked(libc.mount(*encoded, flags, None), f"mount {target}")


def bind(source: str | Path, target: Path, *, read_only: bool = False) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if Path(source).is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    mount(source, target, None, MS_BIND | MS_REC)
    if read_only:
        mount(None, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def make_root(root: Path, mounts: list[dict[str, Any]], read_only: bool) -> None:
    checked(libc.unshare(CLONE_NEWNS | CLONE_NEWPID), "unshare")
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", 0)
    for device in DEVICES:
        bind(f"/dev/{device}", root / "dev" / device)
    (root / "proc").mkdir()
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    for each in mounts:
        bind(each["source"], root / each["target"].lstrip("/"), read_only=each.get("read_only", False))
    if read_only:
        mount(None, root, None, MS_REMOUNT | MS_RDONLY)


def become(root: Path, container: dict[str, Any]) -> None:
    """In the child, process 1 of its namespace: the container itself."""
    mount("proc", root / "proc", "proc", 0)
    os.chroot(root)
    os.chdir("/")
    os.setgroups([])
    os.setgid(container["user"])
    os.setuid(container["user"])
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # after setuid, which clears it
    os.execve(container["command"][0], container["command"], container["env"])


def main() -> None:
    container = json.loads(sys.argv[1])
    root = Path(container["root"])
    root.mkdir(parents=True, exist_ok=True)
    make_root(root, container["mounts"], container["read_only"])
    child = os.fork()
    if child == 0:
        try:
            become(root, container)
        except BaseException as error:
            print(f"the container can't be started: {error}", file=sys.stderr, flush=True)
            os._exit(128)
    Path(container["pid_file"]).write_text(str(child))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
