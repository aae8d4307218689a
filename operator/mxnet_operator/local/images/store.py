"""Image store of the local cluster: built-in images, images added from folders, their names, and their environments."""

import contextlib
import difflib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from mxnet_operator.local.claims import open_lock, try_lock
from mxnet_operator.local.home import write_private
from mxnet_operator.local.images.day import DayImage, MXNetRequirement, Wanted, choose
from mxnet_operator.local.images.environment import MARK, Environment, installed_interpreter
from mxnet_operator.local.images.folder import IGNORED, Start, copy_folder, read_start
from mxnet_operator.local.images.lock import Lock, read_lock
from mxnet_operator.local.images.requirements import Addition, Requirements, read_plain
from mxnet_operator.local.images.snapshot import Snapshot
from mxnet_operator.local.images.uv_process import ImageError, ProgressReader, Report

_REFERENCE = re.compile(
    r"(?:(?:index\.)?docker\.io/(?:library/)?)?"
    r"(?P<path>(?:[a-zA-Z0-9-]+[.:][a-zA-Z0-9.:-]+/)?[a-z0-9]+(?:(?:/|[._]|__|-+)[a-z0-9]+)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)
"""Image reference (distribution/reference), loosely: Docker Hub's domain, another registry and a path, tag, digest."""


def normalised(name: str) -> str:
    """Normalize an image's name: without Docker Hub's domain, always with a tag or a digest.

    Raises:
        ImageError: the name isn't an image reference.
    """
    match = _REFERENCE.fullmatch(name)
    if match is None:
        raise ImageError(
            f"{name!r} isn't the name of an image: lower-case parts joined by '/', then ':' and a tag, "
            "as in team/digits:1.0"
        )
    path, tag, digest = match.group("path", "tag", "digest")
    return f"{path}@{digest}" if digest else f"{path}:{tag or 'latest'}"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Added image: its folder, the image whose packages it uses (None: a lock of its own), and further packages."""

    folder: str
    base: str | None = None
    packages: tuple[str, ...] = ()


class Registry:
    """File `<home>/images.json`, replaced atomically under a lock; readers need no lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Entry]:
        """Read all entries by name.

        Raises:
            ImageError: the file is damaged.
        """
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Entry])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise ImageError(
                f"The list of images {self._path} can't be read ({error}). "
                "Mend it, or remove it and add your images again."
            ) from error

    def change(self, change: Callable[[dict[str, Entry]], None]) -> None:
        """Apply `change` to the entries and write them, as one transaction.

        Raises:
            ImageError: from `change`, or because the file can't be read or written.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(open_lock(self._path.with_suffix(".lock"))) as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                entries = self.read()
                change(entries)
                text = msgspec.json.format(msgspec.json.encode(entries, order="deterministic"), indent=1)
                write_private(self._path, text)
        except OSError as error:
            raise ImageError(f"The list of images {self._path} can't be written: {error}") from error


BASE_IMAGE: Final = "mxjob/mxnet:1.9.1"
GPU_IMAGE: Final = "mxjob/mxnet:1.9.1-cu112"
TVM_IMAGE: Final = "mxjob/tvm:0.27"
ADD_COMMAND: Final = "mxjob local image add"
_BUILT_IN: Final = {
    BASE_IMAGE: Path(__file__).with_name("mxnet-1.9.1.txt"),
    GPU_IMAGE: Path(__file__).with_name("mxnet-1.9.1-cu112.txt"),
    TVM_IMAGE: Path(__file__).with_name("tvm-0.27.txt"),
}
_MXNET: Final = "1.9.1"
_PYTHON: Final = "3.11"
"""MXNet and Python of `BASE_IMAGE`."""
_ANY: Final = Wanted()
_LOCK_NAME: Final = "requirements.txt"
_SNAPSHOT_PREFIX: Final = "run/"
_BUILDING: Final = 3600.0
"""Seconds that the environment of a new snapshot may take to build."""
KEPT_SNAPSHOTS: Final = 20
"""Copies of folders that stay although no unfinished job has them: the same script again copies nothing."""


@dataclass(frozen=True, slots=True)
class Image:
    """Image of the local cluster.

    `folder` holds the files of its working directory (None: a built-in image, which has none); `base` is the image
    whose packages it uses (None: it brings a lock of its own); `packages` are requirements added to them.
    """

    name: str
    folder: Path | None
    base: str | None
    packages: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return where its files and packages come from."""
        return (f"{self.folder}" + (f" on {self.base}" if self.base else "")) if self.folder else "built in"


@dataclass(frozen=True, slots=True)
class ReadyImage:
    """Image that containers can start from: interpreter, folder of programs, files, and default command."""

    python: Path
    bin_dir: Path
    folder: Path | None
    start: Start = field(default_factory=Start)
    library_path: str = ""
    """LD_LIBRARY_PATH of its containers."""
    is_snapshot: bool = False
    """Whether `folder` is a copy that has the image's files only."""

    def copy_folder(self, destination: Path) -> None:
        """Copy the image's files into a container's working directory. Blocks: call it in a thread.

        Raises:
            ImageError: they can't be copied; see `folder.copy_folder`.
        """
        if self.folder is not None:
            copy_folder(self.folder, destination, ignored=frozenset() if self.is_snapshot else IGNORED)


class ImageStore:
    """Image store of one home folder: `images.json` and the cache `images/`."""

    def __init__(self, home: Path) -> None:
        self._registry = Registry(home / "images.json")
        self._cache = home.absolute() / "images"
        self._snapshots = home.absolute() / "snapshots"
        self._environments: dict[str, Environment] = {}
        """By the key of their lock; each remembers a build that failed for good."""

    def choose_base(self, folder: Path, packages: Sequence[str] = (), wanted: Wanted = _ANY) -> tuple[str, str]:
        """Choose the MXNet image for a folder: what is wanted, what its requirements name, or else `BASE_IMAGE`.

        Returns its name, and the requirement of MXNet.

        Raises:
            ImageError: there is no such MXNet or Python, or the folder's requirements.txt is a lock and another
                environment is wanted.
        """
        own = folder / _LOCK_NAME
        plain = read_plain(own)
        if wanted and plain is None and own.exists():
            raise ImageError(
                f"{own} is a lock, which is the whole environment: --as-of, --python and --mxnet need none."
            )
        pin = ((plain or Requirements()) + Requirements.parse(packages, "--pip")).mxnet
        is_of_today = wanted.day is None and wanted.python in {None, _PYTHON} and wanted.mxnet in {None, _MXNET}
        if is_of_today and (pin is None or pin.matches(_MXNET)):
            return GPU_IMAGE if wanted.gpus else BASE_IMAGE, ""
        image = choose(wanted, pin, lambda python: installed_interpreter(python) is not None)
        return image.name, pin.text if pin else ""

    async def mxnet_asked_for(self, folder: Path, packages: Sequence[str], base: DayImage) -> str:
        """Return another MXNet, as a requirement, that the newest packages of the base's day need; empty for none.

        Raises:
            ImageError: the requirements can't be resolved.
        """
        added = replace(self._packages(Image("", folder, base.name, tuple(packages))), has_mxnet=False)
        pins = (await added.resolve()).pins.items() if added.requirements.lines else ()
        found = next(filter(None, (MXNetRequirement.parse(f"{name}=={version}") for name, version in pins)), None)
        return "" if found is None or found.matches(base.mxnet) else found.text

    def add(self, name: str, folder: Path, base: str | None = None) -> Image:
        """Add a folder as an image, or change the folder of an added image.

        The packages are those of `base`, else of the folder's own locked requirements.txt, else those of
        `choose_base`; a requirements.txt that is no lock is added to them. Of `base` only the packages are taken, not
        its files.

        Raises:
            ImageError: the name, folder or base can't be used.
        """
        reference = self._addable(name)
        folder = folder.expanduser().absolute()
        if not folder.is_dir():
            raise ImageError(f"{folder} isn't a folder; an image is made of the folder that holds its script.")
        try:
            str(folder).encode()
        except UnicodeEncodeError as error:
            raise ImageError(f"The name of the folder {folder} isn't UTF-8.") from error
        base = self._base(reference, folder, base)
        self._registry.change(lambda entries: entries.update({reference: Entry(str(folder), base)}))
        return Image(reference, folder, base)

    def add_snapshot(self, snapshot: Snapshot, name: str, base: str, packages: Sequence[str]) -> Image:
        """Add a copy of a folder as an image `run/NAME:DIGEST`, named by its content. Blocks: call it in a thread.

        Raises:
            ImageError: a file can't be read, a requirement can't be added, or the copy can't be written.
        """
        Requirements.parse(packages, "--pip")
        digest = snapshot.digest(base, *packages)
        reference, folder = f"{_SNAPSHOT_PREFIX}{name}:{digest}", self._snapshots / f"{name}-{digest}"
        if _LOCK_NAME in snapshot.files:
            self._base(reference, snapshot.source, None)  # refused under the user's path, with no copy left
        snapshot.copy(folder)
        os.utime(folder)
        own = None if _has_lock(folder) else base
        entry = Entry(str(folder), own, tuple(packages))
        self._registry.change(lambda entries: entries.update({reference: entry}))
        return Image(reference, folder, own, tuple(packages))

    def unused_snapshots(self, in_use: Set[str], *, keep: int = 0) -> list[Path]:
        """List the copies of `add_snapshot` that no image `in_use` has, but for the `keep` used last.

        One that was used within the last hour stays: its environment may be building, for a job that is not made yet.
        """
        entries = self._registry.read()
        needed = {*in_use, *(entry.base for entry in entries.values())}
        kept = {Path(entry.folder) for name, entry in entries.items() if name in needed}
        copies = [each for each in self._snapshots.glob("[!.]*") if each.is_dir()]
        copies.sort(key=_last_used)
        old = (each for each in copies[: max(0, len(copies) - keep)] if _last_used(each) < time.time() - _BUILDING)
        return [each for each in old if each not in kept]

    def drop_snapshots(self, folders: Collection[Path]) -> None:
        """Delete copies of `add_snapshot` with their images."""

        def change(entries: dict[str, Entry]) -> None:
            for name in [name for name, entry in entries.items() if Path(entry.folder) in folders]:
                del entries[name]

        if folders:
            self._registry.change(change)
        for each in folders:
            shutil.rmtree(each, ignore_errors=True)

    def unused_environments(self, in_use: Set[str]) -> list[Path]:
        """List the folders of built environments that no image `in_use` has."""
        needed = set()
        for name in in_use:
            with contextlib.suppress(ImageError):
                if (image := self.resolve(name)) and (lock := self._packages(image).resolved()):
                    needed.add(self._environment(lock).root)
        built = (each.parent for each in self._cache.glob("*/venv"))
        return sorted(each for each in built if each not in needed)

    def drop_environments(self, folders: Iterable[Path]) -> None:
        """Delete environments, but for those that a process builds just now; `ensure` builds them again."""
        for each in folders:
            with os.fdopen(open_lock(each.with_name(f"{each.name}.lock"))) as held:
                if try_lock(held.fileno()):
                    (each / MARK).unlink(missing_ok=True)
                    shutil.rmtree(each, ignore_errors=True)

    def remove(self, name: str) -> None:
        """Remove an added image; its files, and environments that others may use, are kept.

        Raises:
            ImageError: no such image was added, or another is based on it.
        """
        reference = normalised(name)
        if reference in _BUILT_IN:
            raise ImageError(f"{reference} is built in and can't be removed.")

        def forget(entries: dict[str, Entry]) -> None:
            if reference not in entries:
                raise ImageError(f"There is no image {reference}.")
            users = sorted(name for name, entry in entries.items() if entry.base == reference)
            if users:
                raise ImageError(f"{reference} is the base of {', '.join(users)}: remove what uses it first.")
            del entries[reference]

        self._registry.change(forget)

    def list(self) -> list[Image]:
        """List the built-in images, then the added ones by name."""
        added = sorted(self._registry.read().items())
        return [
            *(Image(name, None, None) for name in _BUILT_IN),
            *(Image(name, Path(entry.folder), entry.base, entry.packages) for name, entry in added),
        ]

    def resolve(self, name: str) -> Image | None:
        """Find the image of this name, in any of its spellings; None where it isn't known."""
        try:
            reference = normalised(name)
        except ImageError:
            return None
        known = next((image for image in self.list() if image.name == reference), None)
        return known or (Image(reference, None, None) if DayImage.parse(reference) else None)

    def how_to_add(self, name: str) -> str:
        """Build the message for an unknown image."""
        try:
            reference = normalised(name)
        except ImageError as error:
            return str(error)
        known = [image.name for image in self.list() if not image.name.startswith(_SNAPSHOT_PREFIX)]
        last = {name: _repository(name).rpartition("/")[2] for name in (reference, *known)}
        near = difflib.get_close_matches(last[reference], [last[name] for name in known], n=1)
        meant = difflib.get_close_matches(reference, [name for name in known if last[name] in near], 1, 0)
        hint = f"Did you mean {meant[0]}? " if meant else ""
        if _repository(reference) == _repository(BASE_IMAGE):
            hint += "Another MXNet is named with its Python: mxjob/mxnet:1.5.1-py3.7. "
        return (
            f"The local cluster has no image {reference}; it pulls none from a registry. {hint}Add the folder that "
            f"holds the image's script with `{ADD_COMMAND} {reference} FOLDER`. Known: {', '.join(known)}."
        )

    def lock_file(self, image: Image) -> Path | None:
        """Return the file of the lock that was made for an image; None where it has one of its own or its base's."""
        file = self._packages(image).file
        return file if file.exists() else None

    async def lock(self, image: Image) -> Lock:
        """Return the lock of the image's packages; make it unless it was made before.

        Raises:
            ImageError: the requirements can't be resolved.
        """
        return await self._packages(image).resolve()

    def versions(self, name: str) -> str:
        """Format what an image has: `Python 3.11, mxnet 1.9.1, numpy 1.23.5`; empty where it isn't locked yet."""
        image = self.resolve(name)
        lock = self._packages(image).resolved() if image is not None else None
        if lock is None:
            return ""
        shown = sorted(each for each in lock.pins if each.startswith("mxnet") or each in {"apache-tvm", "numpy"})
        return ", ".join((f"Python {lock.python}", *(f"{each} {lock.pins[each]}" for each in shown)))

    async def lock_of(self, folder: Path, packages: Sequence[str], base: str) -> Lock:
        """Return the lock of a folder's requirements and further packages on a base, without an image of the folder.

        Raises:
            ImageError: the requirements can't be resolved.
        """
        return await self.lock(Image("", folder, base, tuple(packages)))

    def ready(self, image: Image) -> bool:
        """Whether the image's environment is built."""
        lock = self._packages(image).resolved()
        return lock is not None and self._environment(lock).complete()

    async def ensure(self, image: Image, progress: Report | None = None) -> ReadyImage:
        """Build the image's environment unless it exists; resolve requirements added to its base first.

        Doesn't block the event loop; cancelling it ends the build. Any number of tasks and processes may call it
        for one image at once: one builds, the others wait.

        Raises:
            BuildError: the image can't be built; a later call for the same lock fails at once.
            ImageError: the image can't be built now, or its folder or lock has gone.
        """
        reader = ProgressReader(image.name, progress or (lambda _: None))
        packages = self._packages(image)
        if packages.resolved() is None:
            reader.stage("resolve", ", ".join(line for line, _ in packages.requirements.lines) or str(packages.start))
        environment = self._environment(await packages.resolve(reader.resolving))
        if not environment.complete():
            await environment.build(reader)
        start = read_start(image.folder) if image.folder is not None else Start()
        library_path = environment.library_path()
        is_snapshot = image.name.startswith(_SNAPSHOT_PREFIX)
        return ReadyImage(environment.python, environment.bin_dir, image.folder, start, library_path, is_snapshot)

    def _environment(self, lock: Lock) -> Environment:
        return self._environments.setdefault(lock.key, Environment(self._cache, lock))

    def _packages(self, image: Image) -> Addition:
        """Return the lock at the end of the image's bases, and what the images on the way add to it."""
        if image.folder is not None and not image.folder.is_dir():
            raise ImageError(
                f"The folder {image.folder} of image {image.name} no longer exists. "
                f"Add the image again with its new folder: `{ADD_COMMAND} {image.name} FOLDER`."
            )
        passed = [image.name]
        added = _own_requirements(image)
        while image.base is not None:
            base = self.resolve(image.base)
            if base is None or base.name in passed:
                raise ImageError(f"The base of image {image.name} is missing. {self.how_to_add(image.base)}")
            image = base
            passed.append(image.name)
            added = _own_requirements(image) + added
        start: Lock | DayImage | None
        if image.folder is not None:
            start = read_lock(image.folder / _LOCK_NAME)
        elif image.name in _BUILT_IN:
            start = read_lock(_BUILT_IN[image.name])
        elif (start := DayImage.parse(image.name)) is None:
            raise ImageError(self.how_to_add(image.name))
        return Addition(image.name, start, added, self._cache / "locks")

    def _addable(self, name: str) -> str:
        reference = normalised(name)
        if reference in _BUILT_IN or DayImage.parse(reference):
            raise ImageError(f"{reference} is built in; give your image another name.")
        if "@" in reference:
            raise ImageError(f"{reference} names an image by its digest, which a folder doesn't have; give it a tag.")
        return reference

    def _base(self, reference: str, folder: Path, base: str | None) -> str | None:
        if base is not None:
            image = self.resolve(base)
            if image is None:
                raise ImageError(f"The base image is missing. {self.how_to_add(base)}")
            if image.name == reference:
                raise ImageError(f"{reference} can't be its own base.")
            read_plain(folder / _LOCK_NAME)
            return image.name
        return None if _has_lock(folder) else self.choose_base(folder)[0]


def _has_lock(folder: Path) -> bool:
    """Whether the folder brings a lock, its whole environment.

    Raises:
        ImageError: its requirements.txt is neither a lock nor plain.
    """
    own = folder / _LOCK_NAME
    if not own.exists() or read_plain(own) is not None:
        return False
    try:
        read_lock(own)
    except ImageError as error:
        raise ImageError(
            f"{error} Or give a base image, whose packages are then used instead of this file's."
        ) from error
    return True


def _own_requirements(image: Image) -> Requirements:
    """Return what an image adds to the packages of its base."""
    if image.folder is None:
        return Requirements()
    own = None if image.base is None else read_plain(image.folder / _LOCK_NAME, _LOCK_NAME)
    return (own or Requirements()) + Requirements.parse(image.packages, "--pip")


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _repository(name: str) -> str:
    return name.rpartition(":")[0]
