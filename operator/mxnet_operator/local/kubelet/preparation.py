"""Prepares one run of a container: its image, its environment with addresses, its folder and its command."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mxnet_operator.build.fail_fast import HOOK
from mxnet_operator.kube.client import Client
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import CONFIGMAPS, SERVICES
from mxnet_operator.local.images import ReadyImage, Start
from mxnet_operator.local.kubelet import environment
from mxnet_operator.local.kubelet.devices import GPU
from mxnet_operator.local.kubelet.environment import ConfigError, ConfigMaps, expand
from mxnet_operator.local.kubelet.host import Host
from mxnet_operator.local.kubelet.loopback import Names, Pending, adapt
from mxnet_operator.local.kubelet.paths import Paths
from mxnet_operator.local.kubelet.volumes import mounts
from mxnet_operator.local.quantities import container_requests

_HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class NoCommandError(Exception):
    """The container has nothing to execute."""


@dataclass(frozen=True, slots=True)
class PodPlace:
    """Where a pod is on this machine."""

    folder: Path
    address: str
    volumes: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that a process needs to start."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    folder: Path


async def fetch_config_maps(client: Client, namespace: str, names: set[str]) -> ConfigMaps:
    """Those of the named ConfigMaps that exist.

    Raises:
        KubeError: the API server can't say.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for name in sorted(names):
        try:
            found[name] = await client.get(CONFIGMAPS.path(namespace, name))
        except ApiError as error:
            if error.code != 404:
                raise
    return found


async def addressed_environment(
    host: Host,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    place: PodPlace,
    on_wait: Callable[[tuple[Pending, ...]], None],
) -> dict[str, str]:
    """The container's own variables, once every name in them has an address.

    A gang's pods are created together but not at one moment, so a name whose pod exists is waited for without end,
    as the gang would wait; one whose pod doesn't exist, for `Timing.name_limit` seconds. `on_wait` is told of what
    is missing after `Timing.name_notice` seconds, once.

    Raises:
        ConfigError: the spec refers to what isn't there.
        KubeError: the API server can't be asked.
    """
    namespace = pod["metadata"]["namespace"]
    # The cache may not have heard of the address yet.
    pod = {**pod, "status": {**(pod.get("status") or {}), "podIP": place.address, "hostIP": "127.0.0.1"}}
    config_maps = await fetch_config_maps(host.client, namespace, environment.config_maps_needed(container))
    variables = environment.variables(pod, container, config_maps)
    # Listed anew for each start: a watch could be behind the one that brought the pod.
    services = (await host.client.list(SERVICES.path(namespace)))["items"]
    loop = asyncio.get_running_loop()
    began, told = loop.time(), False
    while True:
        adapted = adapt(variables, Names(namespace, services, host.pods_of(namespace)), place.address)
        waited = loop.time() - began
        given_up = waited >= host.timing.name_limit and not any(each.exists for each in adapted.pending)
        if not adapted.pending or given_up:
            return adapted.values
        if not told and waited >= host.timing.name_notice:
            told = True
            on_wait(adapted.pending)
        milestones = [host.timing.name_limit] if told else [host.timing.name_notice, host.timing.name_limit]
        left = [each - waited for each in milestones if each > waited]
        await _at_most(host.pods_changed.wait(), min(left) if left else None)


async def prepare(
    host: Host,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    place: PodPlace,
    *,
    image: ReadyImage,
    values: Mapping[str, str],
) -> Prepared:
    """Make the container's folder afresh, and its command and environment.

    Raises:
        NoCommandError, ConfigError, MountError, ImageError, OSError: it can't be done (the last ones perhaps later).
    """
    folder = place.folder / "containers" / container["name"]
    workspace, message_file = folder / "workspace", folder / "termination-log"
    inside = {termination_path(container): message_file, **mounts(container, place.volumes)}
    if image.start.folder:
        inside = {image.start.folder: workspace, **inside}
    paths = Paths(inside)
    asked = container.get("workingDir") or image.start.folder
    work = paths.real(asked)
    if work is None:
        work = workspace
        if asked.startswith("/") and asked.strip("/"):
            paths = Paths({**inside, asked: workspace})
        elif asked:
            work = workspace / asked
    await asyncio.to_thread(_make_folders, place.folder, folder, workspace, work, image)
    command = _command(container, image.start)
    own = {name: paths.rewrite(value) for name, value in values.items()}
    argv = tuple(paths.rewrite(expand(each, values)) for each in command)
    if any("\0" in each for each in (*argv, *own, *own.values())):
        raise ConfigError("a command, argument or variable contains a NUL character")
    return Prepared(argv, {**_base(pod, place, image), **own, **_forced(host, pod, container, own)}, work)


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
    """Where the container writes its termination message, as it sees it."""
    return str(container.get("terminationMessagePath") or "/dev/termination-log")


def _make_folders(pod: Path, container: Path, workspace: Path, work: Path, image: ReadyImage) -> None:
    shutil.rmtree(container, ignore_errors=True)
    workspace.mkdir(parents=True)
    for each in (pod / "home", pod / "tmp", work):
        each.mkdir(parents=True, exist_ok=True)
    # It exists from the start, so that a script may open it for appending as in a container.
    (container / "termination-log").touch()
    image.copy_folder(workspace)


def _base(pod: Mapping[str, Any], place: PodPlace, image: ReadyImage) -> dict[str, str]:
    """What a container image would set; the host's own environment stays outside."""
    return {
        "PATH": f"{image.bin_dir}:{_HOST_PATH}",
        "VIRTUAL_ENV": str(image.bin_dir.parent),
        "HOME": str(place.folder / "home"),
        "TMPDIR": str(place.folder / "tmp"),
        "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        # Lines appear in the log when they are written, as with the MXNet images that people run.
        "PYTHONUNBUFFERED": "1",
    }


def _forced(host: Host, pod: Mapping[str, Any], container: Mapping[str, Any], own: Mapping[str, str]) -> dict[str, str]:
    """What the node decides whatever the template says: devices, and the fail-fast hook first on Python's path."""
    count = int(container_requests(container).get(GPU, 0))
    devices = host.devices.take(f"{pod['metadata']['uid']}/{container['name']}", count)
    if devices is None:
        raise ConfigError(f"{count} {GPU} asked for, but too few are free on this node")
    forced = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, devices))}
    if own.get("MXJOB_FAILFAST") != "off":
        rest = own.get("PYTHONPATH")
        forced["PYTHONPATH"] = f"{HOOK}:{rest}" if rest else str(HOOK)
    return forced


async def _at_most(waiting: Awaitable[None], seconds: float | None) -> None:
    try:
        await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        return
