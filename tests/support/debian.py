"""Debian's packages, such as its container runtime, unpacked into the cache; nothing is installed.

apt gets folders of its own for what it knows, so neither the machine's lists nor its locks are touched.
"""

import functools
import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kubernetes_programs import MissingProgramError
from program_processes import tools_cache
from waiting import DOWNLOAD

NODE = (
    "buildah",
    "busybox-static",
    "conmon",
    "containerd",
    "containernetworking-plugins",
    "dbus-daemon",
    "fuse-overlayfs",
    "golang-github-containers-common",
    "golang-github-containers-image",
    "libapparmor1",
    "libaudit1",
    "libcap-ng0",
    "libdbus-1-3",
    "libexpat1",
    "libgpgme11",
    "libsubid4",
    "libsystemd0",
    "mmdebstrap",
    "runc",
    "uidmap",
)
"""The container runtime, message bus, image builder and debootstrap of tests/node, with libraries that may lack."""
RELEASE = "bookworm"
_OVERLAY = 'mount --make-rprivate / && mount -t overlay overlay -o "lowerdir=$1/usr:/usr" /usr && shift && exec "$@"'


@functools.cache
def unpacked(packages: tuple[str, ...] = NODE) -> Path:
    """The folder in which packages are unpacked; downloads them if need be.

    Raises:
        MissingProgramError: This isn't Debian's release that has them, or no mirror answers.
    """
    folder = tools_cache() / f"debian-{hashlib.sha256(' '.join((RELEASE, *packages)).encode()).hexdigest()[:16]}"
    if folder.exists():
        return folder
    if shutil.which("apt-get") is None or f"VERSION_CODENAME={RELEASE}" not in Path("/etc/os-release").read_text():
        raise MissingProgramError(
            f"{packages[0]} and what it needs come from Debian's {RELEASE}, which this machine isn't"
        )
    building = folder.with_name(f"{folder.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    state, debs, root = (building / name for name in ("state", "debs", "root"))
    for each in (state / "lists/partial", state / "cache/archives/partial", debs, root):
        each.mkdir(parents=True)
    apt = ["apt-get", "-qq", "-o", f"Dir::State={state}", "-o", f"Dir::Cache={state}/cache"]
    apt += ["-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=root"]
    try:
        for command in ([*apt, "update"], [*apt, "download", *packages]):
            _run(command, cwd=debs)
        for package in debs.glob("*.deb"):
            _run(["dpkg", "-x", str(package), str(root)], cwd=debs)
    except subprocess.CalledProcessError as error:
        raise MissingProgramError(f"{error.cmd[0]} {error.cmd[-1]}: {error.stderr}") from error
    shutil.rmtree(state)
    shutil.rmtree(debs)
    root.rename(folder)
    shutil.rmtree(building)
    return folder


def installed(*command: object) -> list[str]:
    """The command, run where the packages look installed: in a mount namespace in which they lie over /usr.

    buildah starts itself anew with an empty environment, so no variable would make it find them elsewhere.
    """
    return [str(word) for word in ("unshare", "--mount", "sh", "-c", _OVERLAY, "sh", unpacked(), *command)]


def _run(command: Sequence[str], cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=DOWNLOAD)
