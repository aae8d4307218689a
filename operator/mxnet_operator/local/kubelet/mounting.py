"""Start of a program that sees the container's mounts: a mount namespace of its own, which no root is needed for.

Run as `python -I -S mounting.py PLAN PROGRAM [ARGUMENT...]`; it becomes the program, as the same process. PLAN is a
dictionary as hexadecimal digits of `marshal`, since importing `json` and `signal` would take 10 of 25 ms of CPU time:
`mounts` (path inside, path of this machine, whether read-only), `scratch` (an empty folder), `folder` (where the
program runs), `variables` (those that this interpreter must not have), and `status`, a descriptor that gets the error
if there is one, and ends with the start.

A mount needs a place. One that is missing is made where the user may; in `/`, `/dev` and where the user may not, the
folder is first replaced, for this process alone, by one in memory with all that the folder had, each bound in turn.
"""

import ctypes
import marshal
import os
import sys

NEWNS, NEWUSER = 0x00020000, 0x10000000
RDONLY, REMOUNT, BIND, MOVE, REC, UNBINDABLE, SLAVE = 1, 32, 4096, 8192, 16384, 1 << 17, 1 << 19
KEPT_FLAGS = 2 | 4 | 8 | 1024 | 2048  # nosuid, nodev, noexec, noatime, nodiratime
DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SIGPIPE, SIGXFSZ = 13, 25
NEVER_WRITTEN = ("/", "/dev")

LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, path: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def _mount(source: str, target: str, flags: int, kind: str = "", options: str = "") -> None:
    arguments = os.fsencode(source), os.fsencode(target), kind.encode() or None, ctypes.c_ulong(flags), options.encode()
    _checked(LIBC.mount(*arguments), target)


def enter() -> None:
    """Give this process mounts of its own, as root or in a user namespace in which it stays the user that it is."""
    user, group = os.geteuid(), os.getegid()
    try:
        if LIBC.unshare(NEWNS) != 0:
            _checked(LIBC.unshare(NEWNS | NEWUSER), "/")
            for name, text in ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"):
                with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                    file.write(text)
        _mount("", "/", SLAVE | REC)
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), "a user namespace") from None


class Mounts:
    """Mounts of this process, whose namespace it has entered."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        self.replaced: list[str] = []
        """Folders that are in memory."""

    def _replace(self, folder: str) -> None:
        """Put a folder in memory in the place of one, with the same in it."""
        _mount("tmpfs", self.scratch, 0, "tmpfs")
        _mount("", self.scratch, UNBINDABLE)
        os.chmod(self.scratch, 0o755)  # noqa: PTH101, S103 - read-only in the end
        try:
            found = sorted(os.scandir(folder), key=lambda each: each.name)
        except PermissionError:  # the user never saw what is in it
            found = []
        for each in found:
            self._copy(each, os.path.join(self.scratch, each.name))  # noqa: PTH118
        if folder == "/":
            self._become_root()
        else:
            _mount(self.scratch, folder, MOVE)
        self.replaced.append(folder)

    def _copy(self, found: "os.DirEntry[str]", target: str) -> None:
        try:
            if found.is_symlink():
                os.symlink(os.readlink(found.path), target)  # noqa: PTH211, PTH115
                return
            if found.path == "/dev/ptmx":  # it finds terminals beside it only where it is no mount
                os.symlink("pts/ptmx", target)  # noqa: PTH211
                return
            _make(target, is_folder=found.is_dir())
            if found.path == "/dev/pts":
                _mount("devpts", target, 0, "devpts", "newinstance,ptmxmode=0666,mode=620")
            else:
                _mount(found.path, target, BIND | REC)
        except OSError:  # another user's mount, which shows nothing
            pass

    def _become_root(self) -> None:
        os.chdir(self.scratch)
        if LIBC.syscall(PIVOT_ROOT[os.uname().machine], b".", b".") == 0:
            _checked(LIBC.umount2(b".", DETACH), "/")
        else:  # of a root in memory nothing can be moved away
            _mount(self.scratch, "/", MOVE)
            os.chroot(".")
        os.chdir("/")

    def _place(self, path: str, *, is_folder: bool) -> None:
        """Make the place of a mount if it is missing."""
        if os.path.exists(path):  # noqa: PTH110
            return
        parent = os.path.dirname(path)  # noqa: PTH120
        self._place(parent, is_folder=True)
        if parent not in self.replaced:
            is_written = parent not in NEVER_WRITTEN and os.access(parent, os.W_OK)
            if not is_written:
                self._replace(parent)
        _make(path, is_folder=is_folder)

    def bind(self, mounts: "list[tuple[str, str, bool]]") -> None:
        """Make the mounts, of paths as they are before the first of them."""
        paths = [(os.path.realpath(inside), real, is_read_only) for inside, real, is_read_only in mounts]
        if any(not os.path.lexists("/" + inside.split("/")[1]) for inside, _, _ in paths):
            self._replace("/")
        opened = [(inside, os.open(real, os.O_PATH), is_read_only) for inside, real, is_read_only in paths]
        for inside, source, is_read_only in sorted(opened, key=lambda each: len(each[0])):
            self._place(inside, is_folder=os.path.isdir(f"/proc/self/fd/{source}"))  # noqa: PTH112
            _mount(f"/proc/self/fd/{source}", inside, BIND | REC)
            if is_read_only:
                _mount("", inside, REMOUNT | BIND | RDONLY | os.statvfs(inside).f_flag & KEPT_FLAGS)
            os.close(source)
        for folder in self.replaced:  # what a program writes there would be lost
            _mount("", folder, REMOUNT | BIND | RDONLY)


def _make(path: str, *, is_folder: bool) -> None:
    if is_folder:
        os.mkdir(path)  # noqa: PTH102
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def main() -> None:
    """Enter the namespace, mount, and become the program; else say why not and exit with 127."""
    plan, program = marshal.loads(bytes.fromhex(sys.argv[1])), sys.argv[2:]  # noqa: S302 - the kubelet's own
    what = "mount"
    os.set_inheritable(plan["status"], False)
    try:
        enter()
        Mounts(plan["scratch"]).bind(plan["mounts"])
        what = "start"
        os.chdir(plan["folder"])
        os.environ.pop("LC_CTYPE", None)  # which this interpreter sets where LANG is C
        os.environ.update(plan["variables"])
        for number in SIGPIPE, SIGXFSZ:  # which this interpreter ignores
            LIBC.signal(number, None)
        os.execvp(program[0], program)  # noqa: S606
    except OSError as error:
        path = str(error.filename or "") if what == "mount" else ""
        os.write(plan["status"], marshal.dumps([what, error.errno, path]))
        os._exit(127)


if __name__ == "__main__":
    main()
