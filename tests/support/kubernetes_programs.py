"""Where tests find the programs of Kubernetes: KUBEBUILDER_ASSETS, then the user's cache, then built with Go.

They are built once, from the modules that tests/tools/kubernetes pins, and kept outside the work tree, in the user's
cache, under the hash of go.sum. Building all from nothing takes about six minutes on two cores.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

import platformdirs
import pytest

MODULE = Path(__file__).resolve().parents[1] / "tools" / "kubernetes"
VERSION = (1, 36, 3)
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
BUILD_SECONDS = 3600


class MissingProgramError(Exception):
    """A program that can't be had here, and why."""


def programs(names: Collection[str]) -> dict[str, str]:
    """The path of each program, built if need be.

    Raises:
        MissingProgramError: One is nowhere and can't be built.
    """
    found = {name: path for name in names if (path := _ready(name))}
    missing = [name for name in names if name not in found]
    if missing and (why_not := _build(tuple(missing))):
        raise MissingProgramError(f"{', '.join(missing)}: {why_not}")
    return found | {name: str(_cache() / name) for name in missing}


def programs_or_skip(names: Collection[str]) -> dict[str, str]:
    """The path of each program; skips the test where one can't be had, or fails it where CI is set."""
    try:
        return programs(names)
    except MissingProgramError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


def _ready(name: str) -> str | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    places = [Path(assets) / name] if assets else []
    return next((str(place) for place in (*places, _cache() / name) if place.exists()), None)


def _cache() -> Path:
    key = hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()[:16]
    return Path(platformdirs.user_cache_dir("mxjob")) / "tools" / key


@functools.cache  # what can't be built isn't tried again for every test
def _build(names: tuple[str, ...]) -> str:
    """Build the programs into the cache; says why not, or nothing."""
    if shutil.which("go") is None:
        return f"not in KUBEBUILDER_ASSETS or {_cache()}, and no Go to build with"
    _cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_cache(), prefix="building-") as folder:
        command = ["go", "build", "-o", f"{folder}/", "-ldflags", _stamps(), *(PACKAGES[name] for name in names)]
        try:
            done = subprocess.run(
                command, cwd=MODULE, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not built within {BUILD_SECONDS} s"
        if done.returncode != 0:
            return f"could not be built: {done.stderr[-2000:]}"
        for name in names:  # a rename, so that nobody ever starts half a program
            (Path(folder) / _file_name(PACKAGES[name])).replace(_cache() / name)
    return ""


def _file_name(package: str) -> str:
    """What `go build` calls a package's program: its last element that isn't a version."""
    return [part for part in package.split("/") if part != "v3"][-1]


def _stamps() -> str:
    """The linker's flags that tell the programs their version: without them clients can't parse it."""
    major, minor, patch = VERSION
    stamps = {"gitVersion": f"v{major}.{minor}.{patch}", "gitMajor": major, "gitMinor": minor}
    return " ".join(
        ["-s", "-w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())]
    )
