"""Where tests find programs that Go builds: KUBEBUILDER_ASSETS, the user's cache, PATH. `make programs` builds them.

Tests build nothing. Run as a program this file builds what is missing, from the modules that tests/tools pins, into the
user's cache, under the hash of their module's go.sum and of what is ours. Whoever stops it loses one program at most.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from program_processes import asset, tools_cache
from waiting import BUILD

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

    `minutes` is what a build of all its programs takes on two cores. `completed` names a module whose published source
    lacks files or has others, and where ours belong in it.
    """

    name: str
    minutes: int
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


_NEWEST_KUBERNETES = Module("kubernetes", 8, _stamps(_VERSIONS[_NEWEST]))
KUBERNETES = _NEWEST_KUBERNETES if _MINOR == _NEWEST else Module(f"kubernetes-{_MINOR}", 8, _stamps(VERSION))
KWOK = Module("kwok", 2)
COREDNS = Module("coredns", 1)
KATIB = Module("katib", 1)
_PEER = "github.com/kubeflow/training-operator"
TRAINING_OPERATOR = Module("training-operator", 1, completed=(_PEER, "pkg/cert/cert.go", "pkg/cert/limit.go"))
_ARGO = "github.com/argoproj/argo-workflows/v3"
ARGO = Module(
    "argo",
    3,
    completed=(_ARGO, "workflow/executor/osspecific/signal_linux.go", "ui/dist/app/index.html"),
)
SCHEDULER_PLUGINS = Module("scheduler-plugins", 3, _stamps("v1.33.5"))
_KUEUE = "sigs.k8s.io/kueue"
KUEUE = Module("kueue", 3, completed=(_KUEUE, "pkg/visibility/server.go"))
VOLCANO = Module("volcano", 1)
# the version that a chart's kubeVersion is compared with where no server is asked
_HELM = "helm.sh/helm/v3"
HELM = Module(
    "helm",
    2,
    f"-X {_HELM}/internal/version.version=v3.22.0"
    f" -X {_HELM}/pkg/chartutil.k8sVersionMajor=1 -X {_HELM}/pkg/chartutil.k8sVersionMinor=36",
)
PACKAGES = {
    "kubectl": (_NEWEST_KUBERNETES, "k8s.io/kubernetes/cmd/kubectl"),
    "etcd": (_NEWEST_KUBERNETES, "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": (KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": (KUBERNETES, "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": (KUBERNETES, "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kwok": (KWOK, "sigs.k8s.io/kwok/cmd/kwok"),
    "workflow-controller": (ARGO, f"{_ARGO}/cmd/workflow-controller"),
    "argoexec": (ARGO, f"{_ARGO}/cmd/argoexec"),
    "argo": (ARGO, f"{_ARGO}/cmd/argo"),
    "argo-evaluate": (ARGO, "./evaluate"),
    "argo-trigger": (ARGO, "./trigger"),
    "kueue": (KUEUE, f"{_KUEUE}/cmd/kueue"),
    "training-operator": (TRAINING_OPERATOR, f"{_PEER}/cmd/training-operator.v1"),
    "kubelet": (KUBERNETES, "k8s.io/kubernetes/cmd/kubelet"),
    "coredns": (COREDNS, "mxnet-operator.test/coredns"),
    "controller-gen": (VOLCANO, "sigs.k8s.io/controller-tools/cmd/controller-gen"),
    "helm": (HELM, f"{_HELM}/cmd/helm"),
    "katib-conditions": (KATIB, "mxnet-operator.test/katib"),
    "scheduler-plugins": (SCHEDULER_PLUGINS, "sigs.k8s.io/scheduler-plugins/cmd/scheduler"),
}
"""In the order in which they are built: what most tests need comes first."""
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
WITH_SOURCES = ("workflow-controller", "kueue", "training-operator")
"""Programs of whose source modules tests read manifests."""
_BY_HAND = frozenset() if os.environ.get("MXJOB_COSCHEDULING") else frozenset({"scheduler-plugins"})
AWAITED = "MXJOB_PROGRAMS_ARE_BUILT"
"""Set where a test run builds programs beside its tests, which wait for them."""
_HOW = "`make programs` brings what is missing: once, by Go, in some 20 minutes"
_OLDEST_KUBECTL = (1, 32)
_BUILD = "building"
"""The lock that a build holds, and where it says what it does."""


class MissingProgramError(Exception):
    """A program that can't be had here, and why."""


@contextlib.contextmanager
def building(what: str) -> Iterator[None]:
    """Wait until no other process builds the same, and keep others waiting until the context ends."""
    tools_cache().mkdir(parents=True, exist_ok=True)
    with (tools_cache() / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def missing(names: Collection[str]) -> list[str]:
    """Which of the programs are not there."""
    return [name for name in names if _ready(name) is None]


def programs(names: Collection[str]) -> dict[str, str]:
    """The path of each program.

    Raises:
        MissingProgramError: One is not there.
    """
    if absent := missing(names):
        raise MissingProgramError(f"{', '.join(absent)} not found; {_HOW}")
    return {name: str(_ready(name)) for name in names}


def programs_or_skip(names: Collection[str]) -> dict[str, str]:
    """The path of each program; skips the test where one is not there, or fails it where CI is set."""
    if os.environ.get(AWAITED):
        await_build(names)
    try:
        return programs(names)
    except MissingProgramError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
    pytest.skip(_HOW)  # the same words for all: a run sums its skips by their reasons


def kubectl() -> str:
    """The path of a kubectl of version 1.32 or newer; skips or fails the test where there is none."""
    return programs_or_skip(["kubectl"])["kubectl"]


def source_of(name: str) -> Path:
    """The folder of the source module that a program comes from, as Go downloaded it for `make programs`.

    Raises:
        MissingProgramError: It was not downloaded.
    """
    module, package = PACKAGES[name]
    try:
        return _download(module, package.partition("/cmd/")[0], GOPROXY="off")
    except (OSError, subprocess.CalledProcessError) as error:
        message = f"the source of {name} not found; {_HOW}"
        raise MissingProgramError(message) from error


def source_or_skip(name: str) -> Path:
    """The same; skips the test where it is missing, or fails it where CI is set."""
    try:
        return source_of(name)
    except MissingProgramError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error), pytrace=False)
    pytest.skip(_HOW)


def _download(module: Module, path: str, **environment: str) -> Path:
    command = ["go", "mod", "download", "-json", path]
    env = {**os.environ, **environment}
    done = subprocess.run(command, cwd=module.folder, env=env, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])


def _ready(name: str) -> Path | None:
    cached = PACKAGES[name][0].cache / name
    if found := asset(name):
        return found
    if cached.exists():
        return cached
    on_path = shutil.which(name)
    return Path(on_path) if on_path and (name != "kubectl" or _is_new_enough(on_path)) else None


@functools.cache
def _is_new_enough(kubectl: str) -> bool:
    answer = subprocess.run([kubectl, "version", "--client", "-o", "json"], capture_output=True, check=False)
    try:
        text = json.loads(answer.stdout)["clientVersion"]["gitVersion"]
    except (ValueError, KeyError):
        return False
    found = re.match(r"v(\d+)\.(\d+)", text)
    return found is not None and (int(found[1]), int(found[2])) >= _OLDEST_KUBECTL


def build_status() -> str:
    """What a `make programs` that runs now builds; empty where none runs."""
    try:
        with (tools_cache() / f"{_BUILD}.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return (tools_cache() / f"{_BUILD}.txt").read_text()
    except OSError:
        return ""
    return ""


def await_build(names: Collection[str]) -> None:
    """Wait until the programs are there, as long as a build runs."""
    while missing(names) and build_status():
        time.sleep(1)


def build_missing() -> int:
    """Build all that is missing, and say what; the exit code."""
    wanted = [name for name in PACKAGES if name not in _BY_HAND]
    if shutil.which("go") is None and missing(wanted):
        print(f"Go 1.26 or newer is needed to build {', '.join(missing(wanted))}", file=sys.stderr)
        return 1
    failed = []
    with building(_BUILD):
        _say("sources")
        for name in WITH_SOURCES if shutil.which("go") else ():
            try:
                _download(PACKAGES[name][0], PACKAGES[name][1].partition("/cmd/")[0])
            except subprocess.CalledProcessError as error:
                failed.append(f"the source of {name}")
                print(f"the source of {name}: {error.stdout}{error.stderr}", file=sys.stderr, flush=True)
        absent = missing(wanted)
        for number, name in enumerate(absent, 1):
            rest = _minutes(absent[number - 1 :])
            _say(f"{name}, {number} of {len(absent)} programs, about {rest} minutes for the rest")
            if why_not := _build(name):
                failed.append(name)
                print(f"{name} could not be built: {why_not}", file=sys.stderr, flush=True)
    if failed:
        print(f"Not built: {', '.join(failed)}. `make programs` tries these again.", file=sys.stderr)
        return 1
    print(f"All {len(wanted)} programs are there")
    return 0


def _say(what: str) -> None:
    (tools_cache() / f"{_BUILD}.txt").write_text(what)
    print(f"Building {what}", flush=True)


def _minutes(names: Collection[str]) -> int:
    """What is left of the modules' minutes, by their share of programs."""
    of = [module for module, _ in PACKAGES.values()]
    return max(1, round(sum(PACKAGES[name][0].minutes / of.count(PACKAGES[name][0]) for name in names)))


def _build(name: str) -> str:
    """Build a program into the cache; says why not, or nothing."""
    module, package = PACKAGES[name]
    folder = module.cache / "building"  # always the same: Go's cache knows sources by their paths
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = ["go", "build", "-o", f"{folder}/", "-ldflags", f"-s -w {module.stamps}"]
    try:
        if module.completed:
            path, *files = module.completed
            command.append(_completed_source(module, path, files, folder))
        done = subprocess.run(
            [*command, package],
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
        return done.stderr[-2000:]
    (folder / _file_name(package)).replace(module.cache / name)  # nobody ever starts half a program
    shutil.rmtree(folder)
    return ""


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


def _file_name(package: str) -> str:
    """What `go build` calls a package's program: its last element that isn't a version."""
    return package.removesuffix("/v3").rpartition("/")[2]


if __name__ == "__main__":
    sys.exit(build_missing())
