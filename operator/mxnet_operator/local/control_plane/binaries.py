"""Lookup of the programs of Kubernetes: KUBEBUILDER_ASSETS, then the user's cache."""

import os
from collections.abc import Collection
from pathlib import Path

import platformdirs

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Programs of a control plane."""


class MissingProgramsError(Exception):
    """A program of the control plane is not found."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(f"not found in ${ASSETS_VARIABLE} or under {tools_cache()}: {', '.join(names)}")


def tools_cache() -> Path:
    """Return the folder in the user's cache with a folder of built programs for each version."""
    return Path(platformdirs.user_cache_dir("mxjob")) / "tools"


def asset(name: str) -> Path | None:
    """Find a program in the folder $KUBEBUILDER_ASSETS; None if that is not set or lacks it."""
    folder = os.environ.get(ASSETS_VARIABLE)
    path = Path(folder).absolute() / name if folder else None
    return path if path is not None and path.exists() else None


def find_programs() -> dict[str, Path]:
    """Find the paths of PROGRAMS; programs that KUBEBUILDER_ASSETS lacks come from the newest folder of the cache.

    Raises:
        MissingProgramsError: some are not found.
    """
    found = {name: path for name in PROGRAMS if (path := asset(name)) is not None}
    wanted = [name for name in PROGRAMS if name not in found]
    cache = tools_cache()
    folders = sorted(cache.iterdir(), key=lambda folder: folder.stat().st_mtime) if cache.is_dir() else []
    complete = [folder for folder in folders if all((folder / name).exists() for name in wanted)]
    if not wanted:
        return found
    if not complete:
        raise MissingProgramsError(wanted)
    return found | {name: complete[-1] / name for name in wanted}
