"""Images of the local cluster for commands: their store, their build with a progress bar, and one of a folder."""

import asyncio
import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from mxnet_operator.cli.daemons.home import usable_home
from mxnet_operator.cli.errors import CommandError, extra_needed
from mxnet_operator.cli.output.terminal import message_console, say

if TYPE_CHECKING:
    from mxnet_operator.local.images import BuildProgress, Image, ImageStore

_SHOWN: Final = 5
_NAME_LENGTH: Final = 30


@contextlib.contextmanager
def image_store() -> "Iterator[ImageStore]":
    """Yield the store of this machine.

    Raises:
        CommandError: an image can't be named, added or built by the body.
    """
    with extra_needed("local"):
        from mxnet_operator.local.images import ImageError, ImageStore  # noqa: PLC0415
    try:
        with usable_home() as home:
            yield ImageStore(home)
    except ImageError as error:
        raise CommandError(str(error)) from error


def build_image(store: "ImageStore", image: "Image") -> None:
    """Build an image's environment and show a progress bar meanwhile.

    Raises:
        ImageError: it can't be built.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
        TimeElapsedColumn(),
    )
    console = message_console()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(image.name, total=100, detail="")

        def report(step: "BuildProgress") -> None:
            bar.update(task, completed=step.done, total=step.total, detail=f"{step.stage} {step.detail}", refresh=True)

        asyncio.run(store.ensure(image, report))


def add_folder(folder: Path, packages: Sequence[str], *, gpus: bool, build: bool) -> str:
    """Make an image of a folder for the local cluster and return its name; say what is in it.

    Its base has MXNet for CPUs, or for `gpus`. With `build` its environment is built too.

    Raises:
        CommandError: the folder is too large or can't be read, or its packages can't be had.
    """
    with image_store() as store:
        from mxnet_operator.local.images import BASE_IMAGE, GPU_IMAGE, take_snapshot  # noqa: PLC0415

        snapshot = take_snapshot(folder)
        image = store.add_snapshot(snapshot, image_name(folder), GPU_IMAGE if gpus else BASE_IMAGE, packages)
        _drop_old_snapshots(store)
        left_out = f"; left out by {snapshot.rules}: {_some(snapshot.left_out)}" if snapshot.left_out else ""
        files = "1 file" if len(snapshot.files) == 1 else f"{len(snapshot.files)} files"
        say(f"image {image.name}: {files}, {_size(snapshot.size)} of {folder}{left_out}")
        if snapshot.withheld:
            what, first = _some([_with_target(folder / each, each) for each in snapshot.withheld]), snapshot.withheld[0]
            say(f"left out: {what}; to include one, write a line such as !{first} into {snapshot.rules}")
        if build and not store.ready(image):
            say("building its Python environment, which is kept (MXNet is some 50 MB the first time)")
            build_image(store, image)
        return image.name


def _drop_old_snapshots(store: "ImageStore") -> None:
    """Delete the oldest copies of folders which no unfinished job has; none where the cluster can't be asked."""
    from mxnet_operator.local.images import KEPT_SNAPSHOTS  # noqa: PLC0415

    if not store.unused_snapshots(frozenset(), keep=KEPT_SNAPSHOTS):
        return
    from mxnet_operator.cli.daemons.local_prune import use_of  # noqa: PLC0415
    from mxnet_operator.local.home import cluster_files  # noqa: PLC0415

    with contextlib.suppress(CommandError), usable_home() as home:
        store.drop_snapshots(store.unused_snapshots(use_of(cluster_files(home)).images, keep=KEPT_SNAPSHOTS))


def image_name(folder: Path) -> str:
    """Return the folder's name as the last part of an image's name."""
    return re.sub("[^a-z0-9]+", "-", folder.name.lower())[:_NAME_LENGTH].strip("-") or "folder"


def complete_image(_: typer.Context, incomplete: str) -> list[str]:
    """Return names of images for shell completion; none, rather than an error, where they can't be read."""
    with contextlib.suppress(Exception), image_store() as store:
        return [image.name for image in store.list() if image.name.startswith(incomplete)]
    return []


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


def _with_target(path: Path, name: str) -> str:
    """Return a path's name, with the target of a link: a folder of data is mounted instead of copied."""
    return f"{name} (a link to {path.readlink()}: --mount)" if path.is_symlink() else name


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB" if size >= 1e3 else f"{size} bytes"
