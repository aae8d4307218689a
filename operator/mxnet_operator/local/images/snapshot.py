"""Snapshot of a script's folder: the files that an image of it gets, their size and digest, and their copy."""

import contextlib
import hashlib
import os
import shlex
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from pathspec import GitIgnoreSpec, PathSpec

from mxnet_operator.api import names
from mxnet_operator.local.home import full_disk
from mxnet_operator.local.images.folder import IGNORED, LIMIT_BYTES
from mxnet_operator.local.images.uv_process import ImageError

_CHECKPOINTS: Final = "checkpoints"
"""Folder that is left empty: scripts save into it."""
_NEVER: Final = frozenset({".git", "__pycache__"})
_WITHHELD: Final = (
    *sorted(IGNORED - _NEVER),
    ".env",
    ".env.*",
    "*.pem",
    "id_rsa",
    "id_dsa",
    "id_ecdsa*",
    "id_ed25519*",
)
"""Patterns of names that are left out, unless an ignore file names them after a `!`; some hold passwords and keys."""
LEFT_OUT: Final = (*sorted(_NEVER), *_WITHHELD)
"""Patterns of names that are left out of a snapshot, whatever the folder's ignore files say of others."""
_MOST_FILES: Final = 20_000
_SHOWN: Final = 3
_PIECE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Files of a folder, without what its .dockerignore leaves out, or, where it is too large, its .gitignore files.

    `files` and `folders` are paths relative to `source`; `left_out` names the entries of `source` itself that are left
    out, and `rules` the file that says so. `withheld` are the paths that are left out unless that file names them after
    a `!`: virtual environments, checkpoints, keys, and links that lead out of the folder.
    """

    source: Path
    files: tuple[str, ...]
    folders: tuple[str, ...]
    size: int
    left_out: tuple[str, ...]
    rules: str
    withheld: tuple[str, ...] = ()

    def digest(self, *more: str) -> str:
        """Return a digest of names, modes and contents, and of `more`. Blocks: reads every file.

        Raises:
            ImageError: a file can't be read.
        """
        found = hashlib.sha256("\0".join((*more, *self.folders)).encode("utf-8", "surrogateescape"))
        for name in self.files:
            path = self.source / name
            found.update(b"\0" + name.encode("utf-8", "surrogateescape") + b"\0")
            try:
                if path.is_symlink() and not _is_module(self.source, path):
                    found.update(b"link " + os.fsencode(_target(self.source, path)))
                    continue
                found.update(b"x" if path.stat().st_mode & stat.S_IXUSR else b"-")
                with path.open("rb") as file:
                    while piece := file.read(_PIECE):
                        found.update(piece)
            except OSError as error:
                raise _unreadable(self.source, error) from error
        return found.hexdigest()[:12]

    def copy(self, destination: Path) -> None:
        """Copy the files into the folder `destination` unless it exists, as one step.

        A link that leads out of the folder and is asked for stays a link to the same file of this machine.

        Raises:
            ImageError: a file can't be read.
            OSError: the copy can't be written.
        """
        if destination.exists():
            return
        try:
            destination.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".") as temporary:
                copy = Path(temporary, "files")
                for folder in ("", *self.folders):
                    (copy / folder).mkdir()
                for name in self.files:
                    path = self.source / name
                    if path.is_symlink() and not _is_module(self.source, path):
                        (copy / name).symlink_to(_target(self.source, path))
                    else:
                        shutil.copy2(path, copy / name)
                with contextlib.suppress(FileExistsError):  # another process was faster
                    copy.rename(destination)
        except OSError as error:
            if why := full_disk(destination.parent, error):
                raise ImageError(f"The folder {self.source} can't be copied: {why}") from error
            if error.filename2 is None and Path(os.fsdecode(error.filename or "")).is_relative_to(self.source):
                raise _unreadable(self.source, error) from error
            raise OSError(error.errno, error.strerror, str(destination)) from error


def take_snapshot(source: Path) -> Snapshot:
    """List the files of a folder that an image of it gets. Blocks: walks the folder.

    Raises:
        ImageError: they are more than `LIMIT_BYTES`, or can't be listed.
    """
    docker = source / ".dockerignore"
    try:
        if docker.is_file():
            return _listed(source, ".dockerignore", _DockerRules(docker))
        with contextlib.suppress(_TooLargeError):
            return _listed(source, ".gitignore", _GitRules(leaves_out=False))
        return _listed(source, ".gitignore", _GitRules())
    except OSError as error:
        raise _unreadable(source, error) from error


class _TooLargeError(ImageError):
    """The files of a folder are too many or too large for an image."""


def _listed(source: Path, rules: str, ignore: "_DockerRules | _GitRules") -> Snapshot:
    files: list[str] = []
    folders: set[str] = set()
    left_out: set[str] = set()
    withheld: list[str] = []
    sizes: Counter[str] = Counter()
    for name, entry, is_left_out in _entries(source, source, "", ignore, withheld):
        top = name.partition("/")[0]
        if is_left_out:
            left_out |= {top} if name == top else set()
        elif entry.is_dir(follow_symlinks=False):
            folders.add(name)
        else:
            files.append(name)
            folders.update(str(each) for each in PurePosixPath(name).parents if str(each) != ".")
            sizes[top] += entry.stat(follow_symlinks=False).st_size
        if len(files) > _MOST_FILES:
            break
    if sizes.total() > LIMIT_BYTES or len(files) > _MOST_FILES:
        raise _too_large(source, sizes, len(files))
    left_out -= sizes.keys()  # a pattern with `!` took something back out of them
    saves_into = {each for each in withheld if PurePosixPath(each).name == _CHECKPOINTS and (source / each).is_dir()}
    return Snapshot(
        source,
        tuple(sorted(files)),
        tuple(sorted(folders | saves_into)),
        sizes.total(),
        tuple(sorted(left_out)),
        rules,
        tuple(sorted(withheld)),
    )


def _taken_back(lines: Iterable[str]) -> set[str]:
    """Return the last part of each path that a line takes back by `!`; one of `*` names nothing."""
    taken = (line.strip()[1:].strip().rstrip("/") for line in lines if line.strip().startswith("!"))
    return {last for each in taken if (last := each.rpartition("/")[2]).strip("*")}


def _has_match(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, each) for each in patterns)


class _DockerRules:
    """Patterns of a .dockerignore: relative to the folder, the last match decides."""

    enters_left_out: Final = True
    """A pattern with `!` takes a file back out of a folder that is left out."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text("utf-8", "replace").splitlines()
        self._spec = PathSpec.from_lines("gitignore", map(_anchored, lines))
        self.taken_back = _taken_back(lines)

    def enter(self, folder: Path, inside: str) -> None:
        """Only the one file counts."""

    def match(self, name: str, *, is_folder: bool) -> bool:
        """Whether the entry is left out."""
        return self._spec.match_file(f"{name}/" if is_folder else name)


class _GitRules:
    """Patterns of the .gitignore files of a folder and those below it; with `leaves_out` they leave files out.

    Public scripts keep their data in folders that Git ignores. So only a folder that is too large goes without them.
    """

    enters_left_out: Final = False

    def __init__(self, *, leaves_out: bool = True) -> None:
        self._leaves_out = leaves_out
        self._specs: list[tuple[str, GitIgnoreSpec]] = []
        self.taken_back: set[str] = set()

    def enter(self, folder: Path, inside: str) -> None:
        """Read the file of a folder, whose patterns count below it."""
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            lines = (folder / ".gitignore").read_text("utf-8", "replace").splitlines()
            self._specs.append((inside, GitIgnoreSpec.from_lines(lines)))
            self.taken_back |= _taken_back(lines)

    def match(self, name: str, *, is_folder: bool) -> bool:
        """Whether the entry is left out: the deepest file that says anything decides."""
        for inside, spec in reversed(self._specs if self._leaves_out else ()):
            if name.startswith(inside):
                found = spec.check_file(f"{name[len(inside) :]}/" if is_folder else name[len(inside) :])
                if found.include is not None:
                    return found.include
        return False


def _anchored(line: str) -> str:
    """Return a pattern of a .dockerignore as one of a .gitignore, where a leading slash means the folder itself."""
    text = line.strip()
    if not text or text.startswith("#"):
        return ""
    negation, text = ("!", text[1:].strip()) if text.startswith("!") else ("", text)
    return f"{negation}/{os.path.normpath(text).lstrip('/')}"


def _entries(
    source: Path, folder: Path, inside: str, ignore: "_DockerRules | _GitRules", withheld: list[str]
) -> "Iterator[tuple[str, os.DirEntry[str], bool]]":
    """Yield each entry below a folder, with its relative path and whether it is left out; add the `withheld` ones."""
    ignore.enter(folder, inside)
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda each: each.name)
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if not (is_folder or entry.is_symlink() or entry.is_file()):
            continue  # sockets, devices
        if is_folder and Path(entry, names.OUTPUT_MARK).exists():
            continue  # what an earlier run brought home
        if entry.name in _NEVER:
            continue
        name = f"{inside}{entry.name}"
        is_left_out = ignore.match(name, is_folder=is_folder)
        if not _has_match(entry.name, ignore.taken_back) and _is_withheld(source, entry):
            if is_left_out:
                yield name, entry, True
            else:
                withheld.append(name)
            continue
        yield name, entry, is_left_out
        if is_folder and (not is_left_out or ignore.enters_left_out):
            yield from _entries(source, folder / entry.name, f"{name}/", ignore, withheld)


def _is_withheld(source: Path, entry: "os.DirEntry[str]") -> bool:
    if entry.is_dir(follow_symlinks=False) and Path(entry, "pyvenv.cfg").exists():
        return True
    is_outside = entry.is_symlink() and leads_out(source, Path(entry)) and not _is_module(source, Path(entry))
    return is_outside or _has_match(entry.name, _WITHHELD)


def leads_out(source: Path, link: Path) -> bool:
    return not link.resolve().is_relative_to(source.resolve())


def _is_module(source: Path, link: Path) -> bool:
    """Whether a link leads out of the folder to a Python file, whose content is copied."""
    return link.suffix == ".py" and link.is_file() and leads_out(source, link)


def _target(source: Path, link: Path) -> str:
    """Return what the copy of a link points to: the same, or where it leads out of the folder an absolute path."""
    target = Path(os.path.normpath(link.parent / link.readlink()))
    return str(link.readlink()) if target.is_relative_to(source) and not link.readlink().is_absolute() else str(target)


def _too_large(source: Path, sizes: Counter[str], files: int) -> _TooLargeError:
    shown = [(name, size / 2**20) for name, size in sizes.most_common(_SHOWN) if size >= 2**20] or [("data", 0)]
    largest = ", ".join(f"{name} ({size:.0f} MiB)" for name, size in shown)
    much = (
        f"more than {_MOST_FILES} files"
        if files > _MOST_FILES
        else f"{sizes.total() / 2**20:.0f} MiB, and every replica gets a copy: at most {LIMIT_BYTES / 2**20:.0f} MiB"
    )
    # With a .dockerignore the .gitignore files don't count any more.
    has_git_rules = (source / ".gitignore").exists() and not (source / ".dockerignore").exists()
    how = f"echo {shlex.quote(shown[0][0])} >> {'.gitignore' if has_git_rules else '.dockerignore'}"
    return _TooLargeError(
        f"The folder {source} holds {much}. The largest entries: {largest}.\n"
        f"Leave data out, one entry a line (`{how}`), and give the script its absolute path;"
        " or run the command in a smaller folder."
    )


def _unreadable(source: Path, error: OSError) -> ImageError:
    return ImageError(f"The folder {source} can't be made an image: {error.filename or ''}: {error.strerror or error}")
