"""Folder of a user's local state, private files in it, and the state of its cluster."""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

import msgspec

import mxnet_operator
from mxnet_operator.local.claims import lock_holder

HOME_VARIABLE = "MXJOB_HOME"
_FULL_BYTES = 2**20
"""Free bytes below which a disk is full."""
CLAIMS = "claims"
"""Folder of what is stored for PersistentVolumeClaims, beside those of the pods."""


class HomeError(Exception):
    """The folder for local state can't be used."""

    @classmethod
    def of(cls, home: Path, error: OSError) -> "HomeError":
        """Build the error for a home that can't be made, read or written."""
        where = f" ({error.filename})" if error.filename and Path(error.filename) != home else ""
        return cls(f"{home} can't be used: {error.strerror or error}{where}; name another folder: {HOME_VARIABLE}")


class UnsafeHomeError(HomeError):
    """The folder for local state belongs to another user, or others may write into it or replace it."""


def full_disk(folder: Path, error: OSError) -> str:
    """Describe a write below `folder` that failed because its disk is full; empty for any other error."""
    if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
        return ""
    with contextlib.suppress(OSError):
        if error.errno == errno.ENOSPC and shutil.disk_usage(folder).free >= _FULL_BYTES:
            return ""  # what is full is another disk
    return f"the disk of {folder} is full: make room (mxjob local prune), or name another folder: {HOME_VARIABLE}"


@dataclass(frozen=True)
class ClusterFiles:
    """Paths of one local cluster's files, all under `<home>/cluster`."""

    root: Path

    @property
    def lock(self) -> Path:
        """Lock file, locked while the cluster runs; contains the process id of the last holder."""
        return self.root / "lock"

    @property
    def state(self) -> Path:
        """State of the running cluster (JSON), whose ports the next one reuses where it can."""
        return self.root / "state.json"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def log(self) -> Path:
        """Log of a detached cluster."""
        return self.root / "cluster.log"

    @property
    def pods(self) -> Path:
        """The kubelet's folder, with a folder per pod."""
        return self.root / "pods"

    @property
    def claims(self) -> Path:
        """The folder of what is stored for PersistentVolumeClaims: a folder per namespace, then per claim."""
        return self.pods / CLAIMS


def mxjob_home() -> Path:
    """Return the folder for all local state: $MXJOB_HOME, or the platform's folder for user data.

    Raises:
        HomeError: the user has no home, as a pod's of any uid.
    """
    import platformdirs  # noqa: PLC0415 - of the extra `local`; all else here is for every command

    named = os.environ.get(HOME_VARIABLE)
    try:
        return Path(named).expanduser().absolute() if named else platformdirs.user_data_path("mxjob")
    except RuntimeError as error:
        raise HomeError(f"no folder for local state: this user has no home; name a folder: {HOME_VARIABLE}") from error


def cluster_files(home: Path) -> ClusterFiles:
    """Return the paths of this home's cluster, without touching them."""
    return ClusterFiles(home / "cluster")


def make_cluster_folder(home: Path) -> ClusterFiles:
    """Create the home and the cluster's folder, accessible to their owner only.

    Raises:
        HomeError: it can't be made.
        UnsafeHomeError: the home is another user's, a link, or others may write into it or replace it; the cluster
            starts processes, so anyone who can swap its files could run code as its user.
    """
    try:
        return _make_cluster_folder(home)
    except OSError as error:
        raise HomeError.of(home, error) from error


def _make_cluster_folder(home: Path) -> ClusterFiles:
    files = cluster_files(home)
    if home.is_symlink():
        raise UnsafeHomeError(f"{home} is a link: name the folder itself, {HOME_VARIABLE}={home.resolve()}")
    for folder in (home, files.root):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.getuid():
            raise UnsafeHomeError(f"{folder} belongs to another user (uid {found.st_uid})")
        if stat.S_IMODE(found.st_mode) & 0o022:
            raise UnsafeHomeError(f"others may write into {folder}: chmod go-w it, or name another {HOME_VARIABLE}")
    if problem := _replaceable(home):
        raise UnsafeHomeError(f"others may put another folder in the place of {home}: {problem}")
    files.root.chmod(0o700)
    return files


def _replaceable(home: Path) -> str:
    """Describe how another user could replace the home, or a folder or link on its path; empty if none could.

    A folder's owner and group are trusted: administrators own what lies above a home, a container's user may be none
    of the image's, and a user's private group is often allowed to write.
    """
    ways, seen = [home], set()
    while ways:
        way = ways.pop()
        if way in seen:
            continue
        seen.add(way)
        for entry in (way, *way.parents[:-1]):
            folder = entry.parent
            found = folder.stat()
            if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
                return f"all may write into {folder}; chmod o-w it, or name another {HOME_VARIABLE}"
            if found.st_mode & stat.S_IWOTH and entry.lstat().st_uid not in {0, os.getuid(), found.st_uid}:
                return f"{entry} belongs to another user (uid {entry.lstat().st_uid}); name another {HOME_VARIABLE}"
            if entry.is_symlink():
                ways.append(folder / entry.readlink())
    return ""


def write_private(path: Path, content: bytes) -> None:
    """Replace a file atomically by one that only its owner can ever read."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    draft.replace(path)


class ClusterState(msgspec.Struct, frozen=True):
    """State file, written once a cluster is ready; kept at its end, so that the next one reuses its port."""

    pid: int
    started_at: float
    """Start of the cluster, as Unix time in seconds."""
    port: int
    subnet: str
    pages_port: int = 0
    """Port of the dashboard."""
    dashboard_token: str = ""
    """Token of the dashboard, kept so that a browser's cookie and bookmarks stay valid."""
    stopping: bool = False
    """Whether it has begun to stop."""
    installation: str = ""
    """`installation()` of its process."""

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def dashboard(self) -> str:
        """Address of the dashboard, with its token."""
        return f"http://127.0.0.1:{self.pages_port}/?token={self.dashboard_token}"


def installation() -> str:
    """Return a digest of the files that this distribution was installed with; empty for a checkout."""
    records = Path(mxnet_operator.__file__).parents[1].glob("mxnet_operator-*.dist-info/RECORD")
    return next((hashlib.sha256(each.read_bytes()).hexdigest() for each in records), "")


@dataclass(frozen=True)
class ProcessUse:
    """Memory and CPU usage of a process."""

    resident_bytes: int
    cpu_seconds: float


def write_state(files: ClusterFiles, state: ClusterState) -> None:
    write_private(files.state, msgspec.json.encode(state))


def last_state(files: ClusterFiles) -> ClusterState | None:
    """Read the state of the last cluster of this home, running or not."""
    try:
        return msgspec.json.decode(files.state.read_bytes(), type=ClusterState)
    except (OSError, msgspec.DecodeError):
        return None


def running_state(files: ClusterFiles) -> ClusterState | None:
    """Read the state of the running cluster; None where none is ready, or it is stopping."""
    pid = lock_holder(files.lock)
    state = last_state(files)
    return state if pid is not None and state is not None and state.pid == pid and not state.stopping else None


def process_use(pid: int) -> ProcessUse:
    """Read the memory and CPU usage of a process from the kernel.

    Raises:
        OSError: there is no such process.
    """
    resident_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(times[11]) + int(times[12])
    return ProcessUse(resident_pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK"))
