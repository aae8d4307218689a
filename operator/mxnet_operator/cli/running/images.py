"""Images of the local cluster for commands: their store, their build with a progress bar, and one of a folder."""

import asyncio
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.filesize import decimal

from mxnet_operator.cli.command import option
from mxnet_operator.cli.daemons.home import usable_files, usable_home
from mxnet_operator.cli.errors import CommandError
from mxnet_operator.cli.output.terminal import message_console, say
from mxnet_operator.cli.running.given_command import given_command, is_given
from mxnet_operator.cli.running.proposed_day import proposed_day
from mxnet_operator.readers.enumeration import first_names

if TYPE_CHECKING:
    from mxnet_operator.local.images.day import DayImage
    from mxnet_operator.local.images.snapshot import Snapshot
    from mxnet_operator.local.images.store import Image, ImageStore
    from mxnet_operator.local.images.uv_process import BuildProgress

_SHOWN: Final = 5
_NAME_LENGTH: Final = 30
_DOWNLOADS: Final = {
    "-cu11": "MXNet and CUDA's libraries are some 2 GB",
    "-cu": "MXNet is 150 to 710 MB",
    "": "MXNet is some 50 MB",
}
"""What is downloaded for an MXNet image, by what its name has."""


@contextlib.contextmanager
def image_store() -> "Iterator[ImageStore]":
    """Yield the store of this machine.

    Raises:
        CommandError: an image can't be named, added or built by the body.
    """
    with usable_home() as home:
        from mxnet_operator.local.images.store import ImageStore  # noqa: PLC0415
        from mxnet_operator.local.images.uv_process import ImageError  # noqa: PLC0415

        try:
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


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """Environment of a script as written on the command line: a day, a Python, an MXNet."""

    as_of: str | None = option(
        metavar="DAY", help="Day, as 2019-12-01, 2019-12 or 2019: MXNet, Python and all packages as they were then."
    )
    python: str | None = option(metavar="X.Y", help="Python of the image, as 3.7; default: the MXNet's.")
    mxnet: str | None = option(metavar="VERSION", help="MXNet of the image, as 1.5.1; default: the day's, else 1.9.1.")

    def given(self) -> str:
        """Return the options that were given, for messages; empty for none."""
        given = {"--as-of": self.as_of, "--python": self.python, "--mxnet": self.mxnet}
        return " ".join(f"{flag} {value}" for flag, value in given.items() if value is not None)

    def base(self, store: "ImageStore", folder: Path, packages: Sequence[str] = (), *, gpus: bool = False) -> str:
        """Choose the MXNet image for a folder; say what is in it, unless it is today's.

        Raises:
            ImageError: an option is wrong, or there is no such MXNet or Python.
        """
        from mxnet_operator.local.images.day import DayImage, Wanted, parse_day  # noqa: PLC0415
        from mxnet_operator.local.images.uv_process import ImageError  # noqa: PLC0415

        day = None if self.as_of is None else parse_day(self.as_of)
        wanted = Wanted(day, self.python, self.mxnet, gpus, proposed_day(folder))
        base, asked = store.choose_base(folder, packages, wanted)
        found = DayImage.parse(base)
        if found and day and self.python != "2.7" and not (self.mxnet or asked):  # pip takes minutes
            with contextlib.suppress(ImageError):  # the build says what can't be had
                pin = asyncio.run(store.mxnet_asked_for(folder, packages, found))
                base, asked = store.choose_base(folder, [*packages, pin], wanted)
                found = DayImage.parse(base)
        if found is not None:
            say(f"{found}" + (f" (the requirements ask for {asked})" if asked else ""))
            if is_given("--workers") and (warning := _several_workers(found, asked)):
                say(warning, style="yellow")
        return base


def _several_workers(image: "DayImage", asked: str) -> str:
    """Return a warning where several Workers of an image can't train together; empty where they can.

    `asked` is the requirement that chose its MXNet, where one did.
    """
    release = tuple(map(int, image.mxnet.split(".")))
    if release >= (1, 1) or (image.python == "2.7" and release >= (0, 11)):
        return ""
    day = ("--as-of", "2018-02-28") if is_given("--as-of") else ()
    mxnet = ("--mxnet", "1.1.0") if is_given("--mxnet") else ()
    again = f"write mxnet==1.1.0 for {asked}" if asked else given_command(*day, *mxnet)
    if release < (0, 11):
        return f"MXNet {image.mxnet} has no dist_* kvstore, so that no Workers train together: {again}"
    return (
        f"MXNet {image.mxnet} can't send an optimizer to its servers on Python 3, so that several Workers fail:"
        f" {given_command('--python', '2.7')}; or, with MXNet 1.1: {again}"
    )


def add_folder(
    folder: Path, packages: Sequence[str], environment: EnvironmentOptions, *, gpus: bool, build: bool
) -> str:
    """Make an image of a folder for the local cluster and return its name; say what is in it.

    Its MXNet is for CPUs, or for `gpus`. With `build` its environment is built too.

    Raises:
        CommandError: the folder is too large or can't be read, or its packages can't be had.
    """
    with image_store() as store:
        from mxnet_operator.local.images.snapshot import take_snapshot  # noqa: PLC0415

        snapshot = take_snapshot(folder)
        base = environment.base(store, folder, packages, gpus=gpus)
        image = store.add_snapshot(snapshot, image_name(folder), base, packages)
        _drop_old_snapshots(store)
        _say_contents(image.name, folder, snapshot)
        if build and not store.ready(image):
            download = next(size for build, size in _DOWNLOADS.items() if build in base)
            say(f"building its Python environment, which is kept ({download} the first time)")
            build_image(store, image)
            if store.lock_file(image) is not None:
                say(f"its packages, with hashes: {store.lock_file(image)}")
        return image.name


def _say_contents(image: str, folder: Path, snapshot: "Snapshot") -> None:
    left_out = first_names(snapshot.left_out, _SHOWN)
    left_out = f"; left out by {snapshot.rules}: {left_out}" if left_out else ""
    files = "1 file" if len(snapshot.files) == 1 else f"{len(snapshot.files)} files"
    say(f"image {image}: {files}, {decimal(snapshot.size)} of {folder}{left_out}")
    if snapshot.withheld:
        paths = {name: folder / name for name in snapshot.withheld}
        found = [f"{name} (a link to {p.readlink()}: --mount)" if p.is_symlink() else name for name, p in paths.items()]
        how = f"to include one, write a line such as !{snapshot.withheld[0]} into {snapshot.rules}"
        say(f"left out: {first_names(found, _SHOWN)}; {how}")


def _drop_old_snapshots(store: "ImageStore") -> None:
    """Delete the oldest copies of folders which no unfinished job has; none where the cluster can't be asked."""
    from mxnet_operator.local.images.store import KEPT_SNAPSHOTS  # noqa: PLC0415

    if not store.unused_snapshots(frozenset(), keep=KEPT_SNAPSHOTS):
        return
    from mxnet_operator.cli.daemons.local_state import use_of  # noqa: PLC0415

    with contextlib.suppress(CommandError), usable_files() as files:
        store.drop_snapshots(store.unused_snapshots(use_of(files).images, keep=KEPT_SNAPSHOTS))


def image_name(folder: Path) -> str:
    """Return the folder's name as the last part of an image's name."""
    return re.sub("[^a-z0-9]+", "-", folder.name.lower())[:_NAME_LENGTH].strip("-") or "folder"


def complete_image(_: typer.Context, incomplete: str) -> list[str]:
    """Return names of images for shell completion; none, rather than an error, where they can't be read."""
    with contextlib.suppress(Exception), image_store() as store:
        return [image.name for image in store.list() if image.name.startswith(incomplete)]
    return []
