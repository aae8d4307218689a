"""`mxjob local image`: images of the local cluster."""

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mxnet_operator.cli.app import App
from mxnet_operator.cli.command import option, with_options
from mxnet_operator.cli.errors import CommandError, UsageError
from mxnet_operator.cli.output.terminal import say, write_line
from mxnet_operator.cli.running.images import EnvironmentOptions, build_image, complete_image, image_store

if TYPE_CHECKING:
    from mxnet_operator.local.images.store import Image, ImageStore

app = App(
    help="""Manage images of the local cluster: folders of files, and virtual environments built by uv.

    A pod whose image is neither built in nor added here stays in ErrImagePull. A pod whose image can't be built fails.
    """
)

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Image name as in the manifest, such as mxjob/digits:1.0.", autocompletion=complete_image
    ),
]


@app.command()
@with_options
def add(
    *,
    name: NameArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with the files of its working directory.")],
    base: str | None = option(
        metavar="IMAGE",
        help="Image whose packages it uses, as mxjob/tvm:0.27; default: MXNet, or a locked requirements.txt.",
    ),
    environment: EnvironmentOptions,
) -> None:
    """Add a folder as an image, or change the folder of an added image.

    The packages of a requirements.txt in it are added to those of the base when the image is built.
    """
    if base is not None and environment.given():
        raise UsageError(f"--base and {environment.given()} both choose the packages: give one")
    with image_store() as store:
        if environment.given():
            base = environment.base(store, folder)
        image = store.add(name, folder, base)
        say(f"image {image.name}: {image}")


@app.command("list")
def list_images() -> None:
    """List images, whether their environment is built, and their folder."""
    with image_store() as store:
        images = store.list()
        from mxnet_operator.local.images.uv_process import ImageError  # noqa: PLC0415

        width = max(len(image.name) for image in images)
        for image in images:
            built = "not built"
            with contextlib.suppress(ImageError):
                built = "ready    " if store.ready(image) else built
            write_line(f"{image.name:<{width}}  {built}  {image}")


@app.command()
def show(name: NameArgument) -> None:
    """Print the locked requirements of an image: its Python, its packages, and the hashes of their files."""
    with image_store() as store:
        write_line(asyncio.run(store.lock(_resolved(store, name))).text.rstrip("\n"))


@app.command()
def remove(name: NameArgument) -> None:
    """Remove an added image; its folder is kept."""
    with image_store() as store:
        store.remove(name)
        say(f"image {name} removed")


@app.command()
def build(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Image name; default: all images.", autocompletion=complete_image),
    ] = None,
) -> None:
    """Build the environments of images now, instead of when the first pod needs them."""
    with image_store() as store:
        for image in store.list() if name is None else [_resolved(store, name)]:
            build_image(store, image)
            say(f"image {image.name} is ready: {image}")


def _resolved(store: "ImageStore", name: str) -> "Image":
    if (image := store.resolve(name)) is None:
        raise CommandError(store.how_to_add(name))
    return image
