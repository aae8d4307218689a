"""Preparation of one run of a container: image, environment with addresses, folder and command.

A volume mounted at /data is there for the container's processes, and for no others (`mounting`). Where the kernel lets
no user mount, `/data/train.csv` becomes `<pod folder>/volumes/data/train.csv` wherever the spec writes it out; what a
script itself has built in is not seen then. A relative mount path, or one that begins with `~/`, is a link.
"""

import asyncio
import contextlib
import hashlib
import os
import posixpath
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mxnet_operator.api.names import LABEL_JOB_NAME
from mxnet_operator.api.quantities import container_requests
from mxnet_operator.builders.fail_fast import HOOK, MOUNT_PATH
from mxnet_operator.kube.resources import SERVICES
from mxnet_operator.local.apiserver.keyed_objects import fetch_keyed_objects
from mxnet_operator.local.images.environment import PYTHON_VARIABLES
from mxnet_operator.local.images.folder import Start
from mxnet_operator.local.images.store import ReadyImage
from mxnet_operator.local.kubelet import environment
from mxnet_operator.local.kubelet.environment import ConfigError, expand
from mxnet_operator.local.kubelet.host import Host
from mxnet_operator.local.kubelet.loopback import Names, Pending, adapt
from mxnet_operator.local.kubelet.pod_files import write_paths
from mxnet_operator.local.kubelet.processes import Mount
from mxnet_operator.local.kubelet.volumes import MountError, mounts


class Paths:
    """Map of a container's paths to folders of this machine."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """Create a map from absolute paths in the container (files or folders) to real ones."""
        self._real = {inside.rstrip("/"): str(real) for inside, real in folders.items() if inside.strip("/")}
        # The longest first, for volumes mounted inside others. A path starts where no other path goes on, and ends
        # where its last name does.
        known = sorted(self._real, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, known))})(?=/|[^\w.-]|$)")

    def rewrite(self, text: str) -> str:
        if not self._real:
            return text
        return self._pattern.sub(lambda match: self._real[match[1]], text)

    def real(self, inside: str) -> Path | None:
        """Return the real path of an absolute container path; None where it has none."""
        return Path(self.rewrite(inside)) if self._real and self._pattern.match(inside) else None


_HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NoCommandError(Exception):
    """The container has no command to execute."""


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Place of a pod on this machine: its folder, address and volumes."""

    folder: Path
    address: str
    volumes: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Prepared run of a container: everything that its process needs to start."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    mounts: tuple[Mount, ...] = ()
    scratch: Path = Path()
    """Empty folder for `mounting`."""
    notice: str = ""
    """What the container's log says first."""


async def addressed_environment(
    host: Host,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    place: PodPlace,
    on_wait: Callable[[tuple[Pending, ...]], None],
) -> dict[str, str]:
    """Build the container's own variables, waiting until every name in them has an address.

    A gang's pods are created together but not at one moment, so a name whose pod exists is waited for without end,
    as the gang would wait; one whose pod doesn't exist, for `Timing.name_limit` seconds; one whose pod may come later,
    for `Timing.name_notice` seconds. `on_wait` is called with what is missing after that time, once.

    Raises:
        ConfigError: the spec refers to what isn't there.
        KubeError: the API server can't be asked.
    """
    namespace = pod["metadata"]["namespace"]
    # The cache may not have heard of the address yet.
    pod = {**pod, "status": {**(pod.get("status") or {}), "podIP": place.address, "hostIP": "127.0.0.1"}}
    objects = await fetch_keyed_objects(host.client, namespace, environment.references(container))
    variables = environment.variables(pod, container, objects)
    own = {each["metadata"]["name"]: each for each in await _own_services(host, pod)}
    names = Names(namespace, lambda name: own.get(name) or host.service_of(namespace, name), host.pods)
    loop = asyncio.get_running_loop()
    began, is_announced = loop.time(), False
    while True:
        adapted = adapt(variables, names, place.address)
        waited = loop.time() - began
        noticed, late = waited >= host.timing.name_notice, waited >= host.timing.name_limit
        missing = tuple(
            each for each in adapted.pending if not (noticed and each.may_come_later) and not (late and not each.exists)
        )
        if not missing:
            return adapted.values
        if not is_announced and noticed:
            is_announced = True
            on_wait(missing)
        milestones = [host.timing.name_limit] if is_announced else [host.timing.name_notice, host.timing.name_limit]
        left = [each - waited for each in milestones if each > waited]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(left) if left else None):
                await _other_answers(host, names, missing)


async def _other_answers(host: Host, names: Names, pending: tuple[Pending, ...]) -> None:
    """Wait until the answer of each of these names has changed: to look at all of them at each change is quadratic."""
    answers = {each.name: names.look_up(each.name) for each in pending}
    for name, answer in answers.items():
        while names.look_up(name) == answer:
            await host.pods_changed.wait()


async def _own_services(host: Host, pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the Services of the pod's job, or all for another pod: the watch could be behind the one of the pods."""
    metadata = pod["metadata"]
    job = (metadata.get("labels") or {}).get(LABEL_JOB_NAME)
    query = {"labelSelector": f"{LABEL_JOB_NAME}={job}"} if job else None
    found: list[dict[str, Any]] = (await host.client.list(SERVICES.path(metadata["namespace"]), query))["items"]
    return found


async def prepare(
    host: Host,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    place: PodPlace,
    *,
    image: ReadyImage,
    values: Mapping[str, str],
) -> Prepared:
    """Make the container's folder anew, and its command and environment.

    Raises:
        NoCommandError, ConfigError, MountError, ImageError, OSError: it can't be done (the last ones perhaps later).
    """
    folder = place.folder / "containers" / container["name"]
    workspace, message_file = folder / "workspace", folder / "termination-log"
    given = mounts(container, place.volumes, values)
    inside = {path: real for path, real in given.items() if path.startswith("/")}
    links = {path: real for path, real in given.items() if path not in inside}
    inside = {str(container.get("terminationMessagePath") or "/dev/termination-log"): message_file, **inside}
    if image.start.folder:
        inside = {image.start.folder: workspace, **inside}
    paths = Paths(inside)
    asked = container.get("workingDir") or image.start.folder
    lies_at = posixpath.normpath(
        "/" + asked.lstrip("/")
    )  # nothing is above the root: no `..` leads out of the container
    work = paths.real(lies_at)
    if work is None:
        work = workspace
        if not asked.startswith("/"):
            work = workspace / lies_at.strip("/")
        elif lies_at.strip("/"):
            inside = {**inside, asked: workspace}
    await asyncio.to_thread(_make_folders, place.folder, folder, workspace, work, image)
    await asyncio.to_thread(_make_links, place.folder, work, workspace, links)
    await asyncio.to_thread(write_paths, pod, folder, work, inside)
    why = await host.processes.why_no_mounts()
    mounted = {} if why else {path: real for path, real in inside.items() if not _hides(path, host, image)}
    unmounted = {path: real for path, real in inside.items() if path not in mounted}
    paths = Paths({path: _without_blanks(host, place, real) for path, real in unmounted.items()})
    command = _command(container, image.start)
    own = {name: paths.rewrite(value) for name, value in values.items()}
    argv = tuple(paths.rewrite(expand(each, values)) for each in command)
    if any("\0" in each for each in (*argv, *own, *own.values())):
        raise ConfigError("a command, argument or variable contains a NUL character")
    forced = _forced(host, pod, container, own)
    if own.get("DMLC_WORKER_ID") == "0":  # as builders.fail_fast tells it where the pod brings the hook
        forced["MXJOB_RESULT_FILE"] = str(message_file)
    return Prepared(
        argv,
        {**_base(host, pod, place, image), **own, **forced},
        Path(lies_at) if Paths(mounted).real(lies_at) else work,
        _mounts(container, given, mounted),
        folder / "scratch",
        _notice(sorted((given.keys() & unmounted.keys()) - {MOUNT_PATH}), why),
    )


def _hides(inside: str, host: Host, image: ReadyImage) -> bool:
    """Whether a mount would hide what the container needs: its folder, the interpreters, the hook."""
    needed = (host.folder, image.bin_dir, image.python.resolve(), HOOK, Path(sys.executable).resolve())
    there = Path(inside).resolve()
    return any(each.is_relative_to(there) for each in needed)


def _mounts(container: Mapping[str, Any], given: Mapping[str, Path], mounted: Mapping[str, Path]) -> tuple[Mount, ...]:
    read_only = {each["mountPath"] for each in container.get("volumeMounts") or [] if each.get("readOnly")}
    found = [Mount(path, str(real), path in read_only) for path, real in mounted.items()]
    if found:  # what links lead to
        writable = {str(real) for path, real in given.items() if path not in read_only}
        linked = {str(given[path]) for path in given.keys() & read_only if not path.startswith("/")}
        found += [Mount(real, real, read_only=True) for real in sorted(linked - writable)]
    return tuple(found)


def _notice(unmounted: list[str], why: str) -> str:
    if not unmounted:
        return ""
    reason = why or "a mount there would hide the program or the files of the cluster"
    paths = ", ".join(unmounted)
    return f"{paths}: not mounted, only replaced in arguments and variables, not in the script's code ({reason})"


def _without_blanks(host: Host, place: PodPlace, real: Path) -> Path:
    """Return a path that may stand unquoted in the text of a shell: a link to this one, if it has to be."""
    if shlex.quote(str(real)) == str(real):
        return real
    links = place.folder / "links"
    links.mkdir(exist_ok=True)
    link = links / hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    with contextlib.suppress(FileExistsError):
        link.symlink_to(real)
    return host.short_path.ensure() / place.folder.name / "links" / link.name


def _make_links(pod: Path, work: Path, workspace: Path, links: Mapping[str, Path]) -> None:
    """Make mount paths that are relative to the working directory, or begin with `~/`, links to the volumes.

    Raises:
        MountError: one leads out of the pod's folder, or to what is needed there.
        OSError: the file system reports an error.
    """
    home = pod / "home"
    for path, real in links.items():
        base, rest = (home, path[2:]) if path.startswith("~/") else (work, path)
        link = Path(os.path.normpath(base / rest))
        if not link.parent.resolve().is_relative_to(pod) or link in {pod, work, home} or work.is_relative_to(link):
            raise MountError(f"mount path {path} leads out of the pod: give an absolute one")
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_symlink():
            link.unlink()
        elif link.exists():
            if not link.is_relative_to(workspace):  # a copy of the image's files
                raise MountError(f"mount path {path} exists: give an absolute one")
            shutil.rmtree(link) if link.is_dir() else link.unlink()
        link.symlink_to(real)


def _command(container: Mapping[str, Any], start: Start) -> list[str]:
    if container.get("command"):
        return [*container["command"], *(container.get("args") or [])]
    words = [*start.entrypoint, *(container.get("args") or start.command)]
    if not words:
        raise NoCommandError(
            "no command specified: neither does the container have one, nor a Dockerfile in the folder of its image"
            " an ENTRYPOINT or CMD"
        )
    return words


def _make_folders(pod: Path, container: Path, workspace: Path, work: Path, image: ReadyImage) -> None:
    shutil.rmtree(container, ignore_errors=True)
    workspace.mkdir(parents=True)
    for each in (pod / "home", pod / "tmp", container / "scratch", work):
        each.mkdir(parents=True, exist_ok=True)
    # It exists from the start, so that a script may open it for appending as in a container.
    (container / "termination-log").touch()
    image.copy_folder(workspace)


def _base(host: Host, pod: Mapping[str, Any], place: PodPlace, image: ReadyImage) -> dict[str, str]:
    """Build the variables that a container image would set; the host's own environment is left out."""
    return {
        "PATH": f"{image.bin_dir}:{_HOST_PATH}",
        "VIRTUAL_ENV": str(image.bin_dir.parent),
        "HOME": str(place.folder / "home"),
        "TMPDIR": str(host.short_path.ensure() / place.folder.name / "tmp"),
        "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        # Lines appear in the log when they are written, as with the MXNet images that people run.
        "PYTHONUNBUFFERED": "1",
        **PYTHON_VARIABLES,
        **({"LD_LIBRARY_PATH": image.library_path} if image.library_path else {}),
    }


def _forced(host: Host, pod: Mapping[str, Any], container: Mapping[str, Any], own: Mapping[str, str]) -> dict[str, str]:
    """Build the variables that override the template's: devices, and the fail-fast hook first on Python's path."""
    asked = {name: int(amount) for name, amount in container_requests(container).items()}
    devices = host.devices.take(f"{pod['metadata']['uid']}/{container['name']}", asked)
    if devices is None:
        wanted = ", ".join(f"{amount} {name}" for name, amount in asked.items() if "/" in name)
        raise ConfigError(f"{wanted} requested, but not enough are free on this node")
    forced = host.devices.variables(devices)
    if (order := os.environ.get("CUDA_DEVICE_ORDER")) is not None:
        forced["CUDA_DEVICE_ORDER"] = order  # the numbers in this process's CUDA_VISIBLE_DEVICES are counted by it
    if own.get("MXJOB_FAILFAST") != "off":
        rest = own.get("PYTHONPATH")
        forced["PYTHONPATH"] = f"{HOOK}:{rest}" if rest else str(HOOK)
    return forced
