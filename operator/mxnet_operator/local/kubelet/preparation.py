"""Preparation of one run of a container: image, environment with addresses, folder and command.

There are no mounts without root, so `/data/train.csv` of a volume mounted at /data becomes
`<pod folder>/volumes/data/train.csv` wherever the spec writes it out. What a script itself has built in is not seen.
"""

import asyncio
import contextlib
import os
import posixpath
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mxnet_operator.api.names import LABEL_JOB_NAME
from mxnet_operator.api.quantities import container_requests
from mxnet_operator.builders.fail_fast import HOOK
from mxnet_operator.kube.resources import SERVICES
from mxnet_operator.local.apiserver.keyed_objects import fetch_keyed_objects
from mxnet_operator.local.images import ReadyImage, Start
from mxnet_operator.local.kubelet import environment
from mxnet_operator.local.kubelet.environment import ConfigError, expand
from mxnet_operator.local.kubelet.host import Host
from mxnet_operator.local.kubelet.loopback import Names, Pending, adapt
from mxnet_operator.local.kubelet.pod_files import write_paths
from mxnet_operator.local.kubelet.volumes import mounts


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
        """Replace the container's paths in `text` by the real ones."""
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
    variables = environment.variables(pod, container, objects, host.allocatable)
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
    inside = {termination_path(container): message_file, **mounts(container, place.volumes, values)}
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
            paths = Paths(inside)
    await asyncio.to_thread(_make_folders, place.folder, folder, workspace, work, image)
    await asyncio.to_thread(write_paths, pod, folder, work, inside)
    command = _command(container, image.start)
    own = {name: paths.rewrite(value) for name, value in values.items()}
    argv = tuple(paths.rewrite(expand(each, values)) for each in command)
    if any("\0" in each for each in (*argv, *own, *own.values())):
        raise ConfigError("a command, argument or variable contains a NUL character")
    forced = _forced(host, pod, container, own)
    if own.get("DMLC_WORKER_ID") == "0":  # as builders.fail_fast tells it where the pod brings the hook
        forced["MXJOB_RESULT_FILE"] = str(message_file)
    return Prepared(argv, {**_base(host, pod, place, image), **own, **forced}, work)


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


def termination_path(container: Mapping[str, Any]) -> str:
    """Return the path of the termination message within the container."""
    return str(container.get("terminationMessagePath") or "/dev/termination-log")


def _make_folders(pod: Path, container: Path, workspace: Path, work: Path, image: ReadyImage) -> None:
    shutil.rmtree(container, ignore_errors=True)
    workspace.mkdir(parents=True)
    for each in (pod / "home", pod / "tmp", work):
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
