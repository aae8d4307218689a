"""Images of the local cluster: virtual environments built by uv from a lock, and folders of files."""

from mxnet_operator.local.images.day import DayImage, Wanted, parse_day
from mxnet_operator.local.images.folder import Start
from mxnet_operator.local.images.snapshot import LEFT_OUT, Snapshot, take_snapshot
from mxnet_operator.local.images.store import (
    BASE_IMAGE,
    GPU_IMAGE,
    KEPT_SNAPSHOTS,
    TVM_IMAGE,
    Image,
    ImageStore,
    ReadyImage,
    normalised,
)
from mxnet_operator.local.images.uv_process import BuildError, BuildProgress, ImageError

__all__ = [
    "BASE_IMAGE",
    "GPU_IMAGE",
    "KEPT_SNAPSHOTS",
    "LEFT_OUT",
    "TVM_IMAGE",
    "BuildError",
    "BuildProgress",
    "DayImage",
    "Image",
    "ImageError",
    "ImageStore",
    "ReadyImage",
    "Snapshot",
    "Start",
    "Wanted",
    "normalised",
    "parse_day",
    "take_snapshot",
]
