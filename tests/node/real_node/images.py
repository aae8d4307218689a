"""The images of a node, without a registry: each from the project's own Dockerfile, on a base of Debian's packages.

They are archives in the user's cache, under a hash of all that goes into them, so that only what has changed is built.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tenacity
from debian import RELEASE, installed, unpacked
from kubernetes_programs import ARGO, MissingProgramError, building, programs
from left_overs import folder_prefix
from program_processes import tools_cache
from waiting import BUILD

from real_node.configuration import PAUSE_IMAGE

ROOT = Path(__file__).resolve().parents[3]
RECIPES = ROOT / "tests" / "tools" / "node"
_IMAGES = ROOT / "operator" / "mxnet_operator" / "local" / "images"
_PYTHON = f"3.11-slim-{RELEASE}"
_LEAST_PYTHON = "python3.11,python3-pip,python3.11-venv"
_KEPT = 4
"""How many archives of an image stay: other checkouts have their own."""


@dataclass(frozen=True)
class Image:
    """An image, its Dockerfile and what that may copy; `parents` must have been built before.

    `program` is one that Go builds of the modules of tests/tools; the context is then the folder of its module.
    """

    name: str
    dockerfile: Path
    context: Path
    parents: tuple["Image", ...] = ()
    options: tuple[str, ...] = field(default=(), compare=False)
    program: str = ""

    @property
    def archive_name(self) -> str:
        """How the names of its archives begin."""
        return self.name.rpartition("/")[2].replace(":", "-")

    @property
    def ignore_file(self) -> Path:
        """What says which files of the context reach the builder."""
        own = self.dockerfile.with_name(f"{self.dockerfile.name}.dockerignore")
        return own if own.exists() else self.context / ".dockerignore"

    def key(self) -> str:
        """A hash of all that goes into it."""
        content = hashlib.sha256("\0".join((self.name, RELEASE, *self.options)).encode())
        for parent in self.parents:
            content.update(parent.key().encode())
        for path in (self.dockerfile, *self._copied()):
            link = path.readlink() if path.is_symlink() else ""
            content.update(f"{path.relative_to(ROOT)}{link}".encode() + path.read_bytes())
        return content.hexdigest()[:16]

    def _copied(self) -> Iterator[Path]:
        lines = self.ignore_file.read_text().splitlines() if self.ignore_file.exists() else []
        chosen = [line[1:] for line in lines if line.startswith("!")] or ["."]
        files = (file for name in chosen for file in _files(self.context / name))
        return iter(sorted(file for file in files if "__pycache__" not in file.parts))


PAUSE = Image(PAUSE_IMAGE, RECIPES / "pause.Dockerfile", RECIPES)
BUSYBOX = Image("docker.io/library/busybox:1.35", RECIPES / "busybox.Dockerfile", RECIPES)
PYTHON = Image(f"docker.io/library/python:{_PYTHON}", RECIPES / "python.Dockerfile", RECIPES)


def _locked(name: str) -> Image:
    lock = name.replace(":", "-")
    return Image(f"docker.io/mxjob/{name}", _IMAGES / f"{lock}.Dockerfile", _IMAGES, (PYTHON,))


MXNET, MXNET_CUDA, TVM = _locked("mxnet:1.9.1"), _locked("mxnet:1.9.1-cu112"), _locked("tvm:0.27")


def _of_folder(name: str, folder: str, base: Image) -> Image:
    context = ROOT / "examples" / folder
    return Image(f"docker.io/{name}", context / "Dockerfile", context, (PYTHON, base))


DIGITS = _of_folder("mxjob/digits:1.0", "digits", MXNET)
IMAGE_CLASSIFICATION = _of_folder("mxjob/image-classification:1.0", "image-classification", MXNET)
TUNE = _of_folder("mxjob/tune:1.0", "tune", TVM)
SEEDS = _of_folder("mxjob/mxnet:gpu", "seeds/mxnet", MXNET)
LINEAR = _of_folder("stefanofioravanzo/mxnet-linear-dist:cpu", "seeds/003-fioravanzo/linear", MXNET)
OPERATOR = Image(
    "docker.io/library/mxnet-operator:0.2.0.dev0",
    ROOT / "operator" / "Dockerfile",
    ROOT,
    (PYTHON,),
    (f"--build-arg=PYTHON={_PYTHON}",),
)
# Not under the names that Argo's own have: those come from a registry, with more in them.
ARGOEXEC = Image(
    "docker.io/library/argoexec:test", ARGO.folder / "argoexec.Dockerfile", ARGO.folder, program="argoexec"
)
WORKFLOW_CONTROLLER = Image(
    "docker.io/library/workflow-controller:test",
    ARGO.folder / "workflow-controller.Dockerfile",
    ARGO.folder,
    program="workflow-controller",
)


@dataclass(frozen=True)
class Archive:
    """A built image as containerd imports it."""

    image: Image
    path: Path

    @property
    def digest(self) -> str:
        """The digest of its configuration, which names the digest of each layer."""
        name: str = self._read("manifest.json")[0]["Config"]
        return name.removesuffix(".json")

    def config(self) -> dict[str, Any]:
        """Its configuration: user, labels, layers."""
        found: dict[str, Any] = self._read(f"{self.digest}.json")
        return found

    def _read(self, name: str) -> Any:
        with tarfile.open(self.path) as archive:
            file = archive.extractfile(name)
            assert file is not None
            return json.load(file)

    @property
    def mebibytes(self) -> int:
        """Its size, not compressed."""
        return self.path.stat().st_size >> 20


def archives(images: Sequence[Image], announce: Callable[[str], None] = lambda _names: None) -> list[Archive]:
    """The images as archives, built where they are not there yet, in the order given: parents first.

    `announce` gets the names of those that this process is about to build.

    Raises:
        MissingProgramError: One can't be built; with the builder's last words.
    """
    built = [Archive(image, _path(image)) for image in images]
    if all(archive.path.exists() for archive in built):
        return built
    with building("images"):
        absent = [archive for archive in built if not archive.path.exists()]
        if absent:
            announce(", ".join(archive.image.archive_name for archive in absent))
        for archive in absent:
            build(archive.image)
            export(archive.image, archive.path)
            _prune(archive)
    return built


def build(image: Image, *options: str) -> None:
    """Build an image, its parents before it, in the builder's storage; what is there already gets its name again.

    With options it is built whether it is there or not, and has its name until it is built without.
    """
    known = f"localhost/{image.key()}"
    if _has(known) and not options:
        _run(_buildah("tag", known, image.name))
        return
    for parent in image.parents:
        build(parent)
    command = ["bud", "--pull-never", "--layers", "--timestamp=0", "--isolation=chroot", f"--tag={image.name}"]
    command += ["--volume=/etc/ssl/certs:/etc/ssl/certs:ro", f"--file={image.dockerfile}", *image.options, *options]
    if image.ignore_file.exists():
        command.append(f"--ignorefile={image.ignore_file}")
    _run(_buildah(*command, str(_prepared(image))))
    if not options:
        _run(_buildah("tag", image.name, known))


def identity(image: Image, *options: str) -> str:
    """Build an image, and return its ID: the digest of its configuration, which names the digest of each layer."""
    with building("images"):
        build(image, *options)
        return _run(_buildah("inspect", "--type=image", "--format={{.FromImageID}}", image.name)).strip()


def run(image: Image, *command: str) -> str:
    """What a command prints in a container of an image that has been built."""
    with building("images"):
        build(image)
        container = _run(_buildah("from", "--pull-never", image.name)).strip()
    try:
        with tempfile.TemporaryDirectory(prefix=folder_prefix()) as folder:
            Path(folder).chmod(0o777)  # an image's user need not be root
            # Into a file: the last lines of what goes through buildah's own pipes are lost now and then.
            kept = ("sh", "-c", '"$@" >/printed/stdout', "sh", *command)
            _run(_buildah("run", "--isolation=chroot", f"--volume={folder}:/printed", container, "--", *kept))
            return Path(folder, "stdout").read_text()
    finally:
        _run(_buildah("rm", container))


def run_of_folder(folder: Path, python: str, interpreter: Path) -> str:
    """What the command of a folder's Dockerfile prints in a container of its image, built on an interpreter of ours.

    Its base, `python:3.x-slim-...`, is made of Debian's packages and the installation of `interpreter`.
    """
    base = re.findall(r"^FROM (\S+)$", (folder / "Dockerfile").read_text(), re.MULTILINE)[0]
    bud = ("bud", "--pull-never", "--timestamp=0", "--isolation=chroot")
    certificates = "--volume=/etc/ssl/certs:/etc/ssl/certs:ro"
    with building("images"), tempfile.TemporaryDirectory(prefix=folder_prefix()) as made:
        build(PYTHON)
        ignore = Path(made, "ignore")
        ignore.write_text("**/__pycache__\n**/test\n**/*.a\n")
        recipe = (f"--file={RECIPES / 'old-python.Dockerfile'}", f"--build-arg=VERSION={python}")
        _run(_buildah(*bud, *recipe, f"--ignorefile={ignore}", f"--tag={base}", str(interpreter.parents[1])))
        _run(_buildah(*bud, certificates, "--tag=localhost/of-a-folder", str(folder)))
        container = _run(_buildah("from", "--pull-never", "localhost/of-a-folder")).strip()
        try:
            command = json.loads((folder / "Dockerfile").read_text().rpartition("CMD ")[2])
            return _run(_buildah("run", "--isolation=chroot", container, "--", *command))
        finally:
            _run(_buildah("rm", container))
            _run(_buildah("rmi", "localhost/of-a-folder", base))


def export(image: Image, path: Path) -> None:
    """Write a built image into an archive."""
    unfinished = path.with_suffix(".building")
    unfinished.unlink(missing_ok=True)
    # The layers of an OCI archive would be compressed, which costs more than all else.
    _run(_buildah("push", "--quiet", image.name, f"docker-archive:{unfinished}:{image.name}"))
    unfinished.rename(path)


def _has(name: str) -> bool:
    return subprocess.run(_buildah("inspect", "--type=image", name), capture_output=True, check=False).returncode == 0


def _prepared(image: Image) -> Path:
    """The folder from which an image is built: its own, or what Debian has for it."""
    if image.context != RECIPES and not image.program:
        return image.context
    context = _folder() / "context" / image.archive_name
    shutil.rmtree(context, ignore_errors=True)
    (context / "root" / "bin").mkdir(parents=True)
    if image is PYTHON:
        _debootstrap(context / "python.tar")
    elif image.program:
        shutil.copy(programs([image.program])[image.program], context / "root" / "bin" / image.program)
        (context / "root" / "tmp").mkdir()
        (context / "root" / "tmp").chmod(0o1777)
    else:
        shutil.copy(unpacked() / "bin" / "busybox", context / "root" / "bin" / "busybox")
    return context


def _debootstrap(path: Path) -> None:
    apt = Path("/etc/apt")
    sources = [*apt.glob("sources.list"), *apt.glob("sources.list.d/*.list"), *apt.glob("sources.list.d/*.sources")]
    paths = [f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("doc", "man", "locale")]
    command: list[object] = ["env", "SOURCE_DATE_EPOCH=0", "mmdebstrap", "--quiet", "--variant=minbase", *paths]
    command += ["--dpkgopt=force-unsafe-io", f"--include={_LEAST_PYTHON}", RELEASE, path, *sources]
    _run(installed(*command))


def _buildah(*arguments: str) -> list[str]:
    """Buildah's command line; its storage is in the cache."""
    folder = _folder() / "buildah"
    folder.mkdir(parents=True, exist_ok=True)
    storage = f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/storage"\nrunroot = "{folder}/run"\n'
    files = {
        "policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}',
        "registries.conf": 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n',
        "storage.conf": storage,
    }
    for name, text in files.items():
        if not (folder / name).exists():
            (folder / name).write_text(text)
    verb, *rest = arguments
    policy = [f"--signature-policy={folder}/policy.json"] if verb in {"bud", "from", "push"} else []
    environment = ["env", f"CONTAINERS_STORAGE_CONF={folder}/storage.conf"]
    environment.append(f"CONTAINERS_REGISTRIES_CONF={folder}/registries.conf")
    return installed(*environment, "buildah", verb, *policy, *rest)


def _path(image: Image) -> Path:
    return _folder() / f"{image.archive_name}-{image.key()}.tar"


def _files(path: Path) -> Iterator[Path]:
    return (file for file in path.rglob("*") if file.is_file()) if path.is_dir() else iter((path,))


def _folder() -> Path:
    folder = tools_cache() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _prune(archive: Archive) -> None:
    """Delete the oldest archives of an image."""
    found = sorted(_folder().glob(f"{archive.image.archive_name}-*.tar"), key=os.path.getmtime, reverse=True)
    for old in found[_KEPT:]:
        old.unlink(missing_ok=True)


@tenacity.retry(
    # Each buildah starts from a copy of itself in memory, and can't while the kernel moves one of that's pages.
    retry=tenacity.retry_if_exception_message(match="(?s).*memfd copy: Device or resource busy"),
    stop=tenacity.stop_after_attempt(5),
    reraise=True,
)
def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD, check=False)
    if done.returncode != 0:
        raise MissingProgramError(f"{' '.join(command[6:])}: {(done.stdout + done.stderr)[-3000:]}")
    return done.stdout
