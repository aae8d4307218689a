"""`mxjob local image`: the images that the local cluster knows."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mxnet_operator.cli.app import App
from mxnet_operator.cli.errors import CommandError, extra_needed
from mxnet_operator.cli.terminal import message_console, say, write_line

if TYPE_CHECKING:
    from mxnet_operator.local.images import BuildProgress, Image, ImageStore

app = App(
    help="""The images that pods on this machine can have: virtual environments, built from locked requirements.

    A pod whose image is not known here stays in ErrImagePull.
    """,
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As the manifest names it: mxjob/digits:1.0.")]


@app.command()
def add(
    name: NameArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Its working directory's files.")],
    base: Annotated[
        str | None,
        typer.Option(
            metavar="IMAGE",
            help="Whose packages it has, e.g. mxjob/tvm:0.27; default: the folder's requirements.txt, else MXNet's.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a folder an image; a name that is there already gets the new folder."""
    with _store() as store:
        image = store.add(name, folder, base)
        say(f"image {image.name}: {image.folder}" + (f" on {image.base}" if image.base else ""))


@app.command("list")
def list_images() -> None:
    """Show the images, whether their environment is built, and where they come from."""
    with _store() as store:
        images = store.list()
        width = max(len(image.name) for image in images)
        for image in images:
            origin = f"{image.folder}" + (f" on {image.base}" if image.base else "") if image.folder else "built in"
            built = "ready    " if _ready(store, image) else "not built"
            write_line(f"{image.name:<{width}}  {built}  {origin}")


@app.command()
def remove(name: NameArgument) -> None:
    """Forget an image that was added; its folder stays as it is."""
    with _store() as store:
        store.remove(name)
        say(f"image {name} removed")


@app.command()
def build(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Default: every image.", show_default=False)
    ] = None,
) -> None:
    """Build what images need now, instead of when the first pod asks for it."""
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
    say(f"image {image.name} is ready")


def _ready(store: "ImageStore", image: "Image") -> bool:
    from mxnet_operator.local.images import ImageError  # noqa: PLC0415

    try:
        return store.ready(image)
    except ImageError:
        return False


@contextlib.contextmanager
def _store() -> "Iterator[ImageStore]":
    with extra_needed("local"):
        from mxnet_operator.local.home import mxjob_home  # noqa: PLC0415
        from mxnet_operator.local.images import ImageError, ImageStore  # noqa: PLC0415
    try:
        yield ImageStore(mxjob_home())
    except ImageError as error:
        raise CommandError(str(error)) from error
