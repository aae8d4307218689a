"""Files of a job on a cluster, which `tar` writes in a container: the replica's while it runs, else one of a new pod.

That pod mounts the claims that the replica had. Both need the right to `create` pods/exec; the pod, to create pods.
"""

import asyncio
import contextlib
import copy
import posixpath
import shutil
import tarfile
import tempfile
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.cli.errors import CommandError, UsageError
from mxnet_operator.cli.output.replica_state import replica_state
from mxnet_operator.cli.output.terminal import message_console
from mxnet_operator.cli.server.connection import Client
from mxnet_operator.client.jobs import collections, pod_name, pod_spec, replicas
from mxnet_operator.kube.errors import CommandFailedError, KubeError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.readers.volumes import CLAIM, kept_mounts

Object = dict[str, Any]

_FOLDER: Final = "/mxjob/output"
"""Mount path of a replica's folder in the claim, and of all of the claim in the pod that reads it."""
_POD: Final = "MXJOB_POD"
"""Variable with the pod's name, which Kubernetes fills in in a subPathExpr."""
_START_SECONDS: Final = 300.0
_LONGEST_SECONDS: Final = 3600
"""Seconds after which Kubernetes ends a pod of ours whose command was killed: longer than a copy takes."""
_TAKEN_OVER: Final = (
    "affinity",
    "imagePullSecrets",
    "nodeSelector",
    "runtimeClassName",
    "securityContext",
    "serviceAccountName",
    "tolerations",
)
"""Fields of a replica's pod that the pod which reads its claims has too."""


def with_output_folders(job: Object) -> Object:
    """Return a v1 job whose replicas have a folder each in their first writable claim, as MXJOB_OUTPUT_DIR.

    Raises:
        CommandError: there is no such claim (exit code 2).
    """
    changed, found = copy.deepcopy(job), False
    for spec in (changed["spec"].get("mxReplicaSpecs") or {}).values():
        main = names.main_container(spec["template"]["spec"]["containers"])
        mounts = [mount for mount, volume in kept_mounts(spec["template"]["spec"], main) if volume.source == CLAIM]
        if mounts:
            found = True
            folder = {"name": mounts[0]["name"], "mountPath": _FOLDER, "subPathExpr": f"$({_POD})"}
            main["volumeMounts"] = [*main["volumeMounts"], folder]
            pod = {"name": _POD, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
            main["env"] = [pod, {"name": names.OUTPUT_VARIABLE, "value": _FOLDER}, *(main.get("env") or ())]
    if not found:
        raise UsageError(
            "--output: on a cluster, files outlive their pods in a PersistentVolumeClaim only, and the job mounts none",
            hint="name one: --volume CLAIM:/PATH; the script writes to $MXJOB_OUTPUT_DIR",
        )
    return changed


async def bring_home_from_claim(client: Client, job: Object, output: Path) -> list[Path]:
    """Copy what the replicas wrote into their folders of the claim to `output`; return the folders that have files.

    Raises:
        CommandError: they can't be copied; `output` is left without any of them.
    """
    name = job["metadata"]["name"]
    mounts = {each: mount for each in replicas(job) if (mount := _folder_mount(job, each)) is not None}
    if not mounts:
        raise CommandError(f"job {name} was created without --output, and has no folder in a claim for it")
    replica, mount = next(iter(mounts.items()))
    claim = {"name": mount["name"], "mountPath": _FOLDER, "readOnly": True}
    by_pod = {pod_name(name, each): each for each in replicas(job)}
    there = f'cd {_FOLDER} && exec tar -cf - -- $(ls -d "$@" 2>/dev/null)'
    draft = output / f".{name}.part"
    try:
        async with _reading_pod(client, job, replica, [claim]) as pod:
            await _unpack(client, job, pod, ["sh", "-c", there, "sh", *by_pod], draft)
        return await asyncio.to_thread(_sorted_out, draft, output, by_pod)
    finally:
        await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)


async def copy_from_cluster(
    client: Client, job: Object, replica: str, path: str, final: Path, *, pods: Sequence[Object]
) -> None:
    """Copy a file or folder of a replica of a v1 job with these pods to `final`, which doesn't exist.

    Raises:
        CommandError: there is no such file, or it can't be copied.
    """
    pod = next((each for each in pods if each["metadata"]["name"] == pod_name(job["metadata"]["name"], replica)), None)
    mounts = [] if pod is not None and replica_state(pod).state == "Running" else _claim_mounts(job, replica, path)
    parent, last = posixpath.split(posixpath.normpath(path))
    command = ["tar", "-C", parent or ".", "-cf", "-", "--", last]
    draft = final.with_name(f".{final.name}.part")
    try:
        async with contextlib.AsyncExitStack() as held:
            name = await held.enter_async_context(_reading_pod(client, job, replica, mounts)) if mounts else ""
            await _unpack(client, job, name or pod_name(job["metadata"]["name"], replica), command, draft)
        await asyncio.to_thread((draft if last == "." else draft / last).rename, final)
    except OSError as error:
        raise CommandError(f"{replica}:{path} can't be copied to {final}: {error.strerror or error}") from error
    finally:
        await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)


async def _unpack(client: Client, job: Object, pod: str, command: Sequence[str], folder: Path) -> None:
    """Run `tar` in a pod and unpack what it writes into a new folder."""
    path, count = PODS.path(job["metadata"]["namespace"], pod), 0
    await asyncio.to_thread(folder.mkdir, parents=True)
    with tempfile.TemporaryFile(dir=folder) as archive, message_console().status("copying") as shown:
        try:
            async with contextlib.aclosing(client.execute(path, names.CONTAINER, command)) as chunks:
                async for chunk in chunks:
                    await asyncio.to_thread(archive.write, chunk)
                    count += len(chunk)
                    shown.update(f"copying from {pod}: {count / 1e6:.1f} MB")
            await asyncio.to_thread(_extract, archive, folder)
        except (CommandFailedError, tarfile.TarError) as error:
            raise CommandError(f"{pod}: {error}", hint="the image needs tar, and the file must be there") from error


def _extract(archive: Any, folder: Path) -> None:
    archive.seek(0)
    with tarfile.open(fileobj=archive) as opened:
        opened.extractall(folder, filter="data")


def _sorted_out(draft: Path, output: Path, by_pod: dict[str, str]) -> list[Path]:
    """Move each pod's folder that has files into place, under the name of its replica."""
    found = [(draft / pod, output / replica) for pod, replica in by_pod.items() if any((draft / pod).glob("*"))]
    for folder, final in found:
        folder.rename(final)
    return [final for _, final in found]


@contextlib.asynccontextmanager
async def _reading_pod(client: Client, job: Object, replica: str, mounts: Sequence[Object]) -> AsyncGenerator[str]:
    """Create a pod with these mounts of a replica, and yield its name while it runs; then delete it."""
    namespace = job["metadata"]["namespace"]
    made = await client.create(PODS.path(namespace), _pod(job, replica, mounts))
    name = made["metadata"]["name"]
    try:
        await _until_running(client, namespace, name)
        yield name
    finally:
        with contextlib.suppress(KubeError):
            await client.delete(PODS.path(namespace, name), {"gracePeriodSeconds": 0})


async def _until_running(client: Client, namespace: str, name: str) -> None:
    why = "it has no state yet"
    selector = {"fieldSelector": f"metadata.name={name}"}
    try:
        with message_console().status(f"waiting for pod {name}, which reads the claim") as shown:
            async with (
                asyncio.timeout(_START_SECONDS),
                contextlib.aclosing(collections(client, PODS.path(namespace), selector)) as changes,
            ):
                async for present in changes:
                    for pod in present.values():
                        state = replica_state(pod)
                        if state.state == "Running":
                            return
                        why = state.summary or state.state
                        shown.update(f"waiting for pod {name}, which reads the claim: {why}")
                        if state.phase in ("Failed", "Succeeded"):
                            raise CommandError(f"pod {name}, which reads the claim, has ended: {why}")
    except TimeoutError as error:
        raise CommandError(f"pod {name}, which reads the claim, hasn't started after five minutes: {why}") from error


def _pod(job: Object, replica: str, mounts: Sequence[Object]) -> Object:
    spec = pod_spec(job, replica)
    main, mounted = names.main_container(spec["containers"]), {each["name"] for each in mounts}
    pod = {"name": _POD, "value": pod_name(job["metadata"]["name"], replica)}
    owner = {**job["metadata"], "apiVersion": job["apiVersion"], "kind": job["kind"]}  # not its controller
    container = {
        "name": names.CONTAINER,
        "image": main["image"],
        "command": ["sleep", str(_LONGEST_SECONDS)],
        "env": [pod, *(each for each in main.get("env") or () if each["name"] != _POD)],
        "volumeMounts": list(mounts),
    }
    if "securityContext" in main:
        container["securityContext"] = main["securityContext"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{job['metadata']['name']}-files-",
            "ownerReferences": [{key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}],
        },
        "spec": {
            **{key: spec[key] for key in _TAKEN_OVER if key in spec},
            "restartPolicy": "Never",
            "activeDeadlineSeconds": _LONGEST_SECONDS,
            "containers": [container],
            "volumes": [each for each in spec["volumes"] if each["name"] in mounted],
        },
    }


def _claim_mounts(job: Object, replica: str, path: str) -> list[Object]:
    """Return the mount in which a path lies, read-only."""
    spec = pod_spec(job, replica)
    claims = {each["name"] for each in spec.get("volumes") or () if each.get("persistentVolumeClaim")}
    found = [
        mount
        for mount in names.main_container(spec["containers"]).get("volumeMounts") or ()
        if mount["name"] in claims and posixpath.join(path, "").startswith(posixpath.join(mount["mountPath"], ""))
    ]
    if not found:
        raise CommandError(
            f"{replica} doesn't run, and {path} is in no claim that it mounts: it is gone with its pod",
            hint="write to a claim: --volume CLAIM:/PATH",
        )
    return [{**max(found, key=lambda mount: len(mount["mountPath"])), "readOnly": True}]


def _folder_mount(job: Object, replica: str) -> Object | None:
    mounts = names.main_container(pod_spec(job, replica)["containers"]).get("volumeMounts") or ()
    return next((each for each in mounts if each["mountPath"] == _FOLDER), None)
