"""Where tests find the programs of Kubernetes: KUBEBUILDER_ASSETS, then the user's cache, then built with Go.

They are built once, from the modules that tests/tools pins, and kept outside the work tree, in the user's cache, under
the hash of their module's go.sum and of what is ours. Building all from nothing takes about six minutes on two cores.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import BUILD

from mxnet_operator.local.control_plane.binaries import asset, tools_cache

TOOLS = Path(__file__).resolve().parents[1] / "tools"
_NEWEST = "1.36"
_VERSIONS = {_NEWEST: "v1.36.3", "1.35": "v1.35.8"}
"""The minor versions of Kubernetes that tests can run on; the second was the oldest with support on 2026-11-24."""
_MINOR = os.environ.get("MXJOB_KUBERNETES_MINOR") or _NEWEST
VERSION = _VERSIONS[_MINOR]
"""That of the control plane and the kubelet in this test run."""


@dataclass(frozen=True)
class Module:
    """A go.mod of ours with one family of programs: their dependencies agree.

    `completed` names a module whose published source lacks files or has others, and where ours belong in it.
    """

    name: str
    stamps: str = ""
    completed: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where its go.mod is."""
        return TOOLS / self.name

    @property
    def cache(self) -> Path:
        """Where its programs are kept."""
        sources = [self.folder / "go.sum", *sorted(self.folder.rglob("*.go"))]
        content = b"".join(source.read_bytes() for source in sources)
        return tools_cache() / hashlib.sha256(content).hexdigest()[:16]


def _stamps(version: str) -> str:
    """Flags that write a version into Kubernetes' programs: without, clients can't parse what the API server says."""
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())


_NEWEST_KUBERNETES = Module("kubernetes", _stamps(_VERSIONS[_NEWEST]))
KUBERNETES = _NEWEST_KUBERNETES if _MINOR == _NEWEST else Module(f"kubernetes-{_MINOR}", _stamps(VERSION))
KWOK = Module("kwok")
COREDNS = Module("coredns")
_PEER = "github.com/kubeflow/training-operator"
TRAINING_OPERATOR = Module("training-operator", completed=(_PEER, "pkg/cert/cert.go"))
_ARGO = "github.com/argoproj/argo-workflows/v3"
ARGO = Module(
    "argo",
    completed=(_ARGO, "workflow/executor/osspecific/signal_linux.go", "ui/dist/app/index.html"),
)
SCHEDULER_PLUGINS = Module("scheduler-plugins", _stamps("v1.33.5"))
_KUEUE = "sigs.k8s.io/kueue"
KUEUE = Module("kueue", completed=(_KUEUE, "pkg/visibility/server.go"))
VOLCANO = Module("volcano")
# the version that a chart's kubeVersion is compared with where no server is asked
_HELM = "helm.sh/helm/v3"
HELM = Module(
    "helm",
    f"-X {_HELM}/internal/version.version=v3.22.0"
    f" -X {_HELM}/pkg/chartutil.k8sVersionMajor=1 -X {_HELM}/pkg/chartutil.k8sVersionMinor=36",
)
PACKAGES = {
    "scheduler-plugins": (SCHEDULER_PLUGINS, "sigs.k8s.io/scheduler-plugins/cmd/scheduler"),
    "etcd": (_NEWEST_KUBERNETES, "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": (KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": (KUBERNETES, "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": (KUBERNETES, "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": (_NEWEST_KUBERNETES, "k8s.io/kubernetes/cmd/kubectl"),
    "kubelet": (KUBERNETES, "k8s.io/kubernetes/cmd/kubelet"),
    "coredns": (COREDNS, "mxnet-operator.test/coredns"),
    "kwok": (KWOK, "sigs.k8s.io/kwok/cmd/kwok"),
    "training-operator": (TRAINING_OPERATOR, f"{_PEER}/cmd/training-operator.v1"),
    "workflow-controller": (ARGO, f"{_ARGO}/cmd/workflow-controller"),
    "argoexec": (ARGO, f"{_ARGO}/cmd/argoexec"),
    "argo": (ARGO, f"{_ARGO}/cmd/argo"),
    "argo-evaluate": (ARGO, "./evaluate"),
    "argo-trigger": (ARGO, "./trigger"),
    "kueue": (KUEUE, f"{_KUEUE}/cmd/kueue"),
    "controller-gen": (VOLCANO, "sigs.k8s.io/controller-tools/cmd/controller-gen"),
    "helm": (HELM, f"{_HELM}/cmd/helm"),
}
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


class MissingProgramError(Exception):
    """A program that can't be had here, and why."""


@contextlib.contextmanager
def building(what: str = "building") -> Iterator[None]:
    """Wait until no other process builds the same, and keep others waiting until the context ends."""
    tools_cache().mkdir(parents=True, exist_ok=True)
    with (tools_cache() / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def missing(names: Collection[str]) -> list[str]:
    """Which of the programs would have to be built."""
    return [name for name in names if _ready(name) is None]


def programs(names: Collection[str]) -> dict[str, str]:
    """The path of each program, built if need be.

    Raises:
        MissingProgramError: One is nowhere and can't be built.
    """
    for module in dict.fromkeys(module for module, _ in PACKAGES.values()):
        wanted = tuple(name for name in missing(names) if PACKAGES[name][0] is module)
        if wanted and (why_not := _build(module, wanted)):
            raise MissingProgramError(f"{', '.join(wanted)}: {why_not}")
    return {name: str(_ready(name)) for name in names}


def programs_or_skip(names: Collection[str]) -> dict[str, str]:
    """The path of each program; skips the test where one can't be had, or fails it where CI is set."""
    try:
        return programs(names)
    except MissingProgramError as error:
        why_not = str(error)
    if os.environ.get("CI"):
        pytest.fail(why_not, pytrace=False)
    pytest.skip(why_not)


def source_of(name: str) -> Path:
    """The folder of the source module that a program comes from, as Go downloaded it.

    Raises:
        MissingProgramError: Go isn't here, or couldn't download it.
    """
    module, package = PACKAGES[name]
    if shutil.which("go") is None:
        raise MissingProgramError(f"the source of {name}: no Go to download it with")
    try:
        return _download(module, package.partition("/cmd/")[0])
    except subprocess.CalledProcessError as error:
        raise MissingProgramError(f"the source of {name}: {error.stdout}{error.stderr}") from error


def _download(module: Module, path: str) -> Path:
    command = ["go", "mod", "download", "-json", path]
    done = subprocess.run(command, cwd=module.folder, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])


def _completed_source(module: Module, path: str, files: Collection[str], folder: Path) -> str:
    """Copy a module's source with the files that it lacks; the flag by which Go builds from the copy."""
    shutil.copytree(_download(module, path), folder / "source", copy_function=shutil.copyfile)
    for file in files:
        target = folder / "source" / file
        there = next(each for each in target.parents if each.exists())
        there.chmod(0o755)  # Go's module cache is read-only
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(module.folder / target.name, target)
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(module.folder / name, folder / name)
    edit = ["go", "mod", "edit", f"-replace={path}={folder / 'source'}", str(folder / "go.mod")]
    subprocess.run(edit, check=True, capture_output=True, text=True)
    return f"-modfile={folder / 'go.mod'}"


def _ready(name: str) -> Path | None:
    cached = PACKAGES[name][0].cache / name
    return asset(name) or (cached if cached.exists() else None)


@functools.cache  # what can't be built isn't tried again for every test
def _build(module: Module, names: tuple[str, ...]) -> str:
    """Build the programs into the cache; says why not, or nothing."""
    if shutil.which("go") is None:
        return f"not in KUBEBUILDER_ASSETS or {module.cache}, and no Go to build with"
    module.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=module.cache, prefix="building-") as folder:
        packages = [PACKAGES[name][1] for name in names]
        command = ["go", "build", "-o", f"{folder}/", "-ldflags", f"-s -w {module.stamps}"]
        try:
            if module.completed:
                path, *files = module.completed
                command.append(_completed_source(module, path, files, Path(folder)))
            done = subprocess.run(
                [*command, *packages],
                cwd=module.folder,
                env={**os.environ, "CGO_ENABLED": "0"},  # no C compiler is needed, and the programs run in any root
                capture_output=True,
                text=True,
                timeout=BUILD,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not built within {BUILD} s"
        except subprocess.CalledProcessError as error:
            return f"its source could not be had: {error.stdout}{error.stderr}"
        if done.returncode != 0:
            return f"could not be built: {done.stderr[-2000:]}"
        for name, package in zip(names, packages, strict=True):  # a rename: nobody ever starts half a program
            (Path(folder) / _file_name(package)).replace(module.cache / name)
    return ""


def _file_name(package: str) -> str:
    """What `go build` calls a package's program: its last element that isn't a version."""
    return package.removesuffix("/v3").rpartition("/")[2]
