"""`mxjob local image`: images of the local cluster."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mxnet_operator.cli.app import App
from mxnet_operator.cli.daemons.home import usable_home
from mxnet_operator.cli.errors import CommandError, extra_needed
from mxnet_operator.cli.output.terminal import message_console, say, write_line

if TYPE_CHECKING:
    from mxnet_operator.local.images import BuildProgress, Image, ImageStore

app = App(
    help="""Manage images of the local cluster: virtual environments, built from locked requirements.

    A pod whose image is neither built in nor added here stays in ErrImagePull. A pod whose image can't be built fails.
    """,
)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Image name as in the manifest, such as mxjob/digits:1.0.")
]


@app.command()
def add(
    name: NameArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with the files of its working directory.")],
    base: Annotated[
        str | None,
        typer.Option(
            metavar="IMAGE",
            help="Image whose packages it uses, as mxjob/tvm:0.27; default: the folder's requirements.txt, or MXNet.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Add a folder as an image, or change the folder of an added image."""
    with _store() as store:
        image = store.add(name, folder, base)
        say(f"image {image.name}: {image}")


@app.command("list")
def list_images() -> None:
    """List images, whether their environment is built, and their folder."""
    with _store() as store:
        images = store.list()
        width = max(len(image.name) for image in images)
        for image in images:
            built = "ready    " if _ready(store, image) else "not built"
            write_line(f"{image.name:<{width}}  {built}  {image}")


@app.command()
def remove(name: NameArgument) -> None:
    """Remove an added image; its folder is kept."""
    with _store() as store:
        store.remove(name)
        say(f"image {name} removed")


@app.command()
def build(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Image name; default: all images.", show_default=False)
    ] = None,
) -> None:
    """Build the environments of images now, instead of when the first pod needs them."""
    with _store() as store:
        images = store.list()
        if name is not None:
            image = store.resolve(name)
            if image is None:
                raise CommandError(store.how_to_add(name))
            images = [image]
        for image in images:
            _build(store, image)


def _build(store: "ImageStore", image: "Image") -> None:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[detail]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=message_console(), transient=True) as bar:
        task = bar.add_task(image.name, total=100, detail="")

        def report(step: "BuildProgress") -> None:
            bar.update(task, completed=step.done, total=step.total, detail=f"{step.stage} {step.detail}", refresh=True)

        asyncio.run(store.ensure(image, report))
    say(f"image {image.name} is ready: {image}")


def _ready(store: "ImageStore", image: "Image") -> bool:
    from mxnet_operator.local.images import ImageError  # noqa: PLC0415

    try:
        return store.ready(image)
    except ImageError:
        return False


@contextlib.contextmanager
def _store() -> "Iterator[ImageStore]":
    with extra_needed("local"):
        from mxnet_operator.local.images import ImageError, ImageStore  # noqa: PLC0415
    try:
        with usable_home() as home:
            yield ImageStore(home)
    except ImageError as error:
        raise CommandError(str(error)) from error
