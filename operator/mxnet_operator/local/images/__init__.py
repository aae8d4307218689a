"""Images of the local cluster: virtual environments built by uv from a lock, and folders of files."""

from mxnet_operator.local.images.dockerfile import Start
from mxnet_operator.local.images.errors import BuildError, ImageError
from mxnet_operator.local.images.progress import BuildProgress
from mxnet_operator.local.images.reference import normalised
from mxnet_operator.local.images.store import BASE_IMAGE, GPU_IMAGE, TVM_IMAGE, Image, ImageStore, ReadyImage

__all__ = [
    "BASE_IMAGE",
    "GPU_IMAGE",
    "TVM_IMAGE",
    "BuildError",
    "BuildProgress",
    "Image",
    "ImageError",
    "ImageStore",
    "ReadyImage",
    "Start",
    "normalised",
]
