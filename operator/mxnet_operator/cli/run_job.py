"""One job from its creation to its end, or to the moment when its follower is interrupted."""

import asyncio
import contextlib
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mxnet_operator.api.conditions import SUCCEEDED, TERMINAL, job_state, terminal_message
from mxnet_operator.cli.connection import Target, connect
from mxnet_operator.cli.errors import CommandError, Exit
from mxnet_operator.cli.follow_logs import LogFollower
from mxnet_operator.cli.follow_replicas import replicas_shown
from mxnet_operator.cli.interrupts import first_signal
from mxnet_operator.cli.job_kinds import in_v1_words, kind_of_job, not_served
from mxnet_operator.cli.jobs import (
    PODS,
    DeletedError,
    collections,
    delete_job,
    job_versions,
    main_replica,
    pod_selector,
    until_gone,
)
from mxnet_operator.cli.progress import Progress, elapsed_text, progress
from mxnet_operator.cli.terminal import say
from mxnet_operator.kube.resources import Resource

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client


_REST_OF_PODS = 10.0
"""Seconds for which the report waits for replicas that end after their job."""


class OnInterrupt(StrEnum):
    """What becomes of the job when its follower is interrupted."""

    DELETE = "delete"
    KEEP = "keep"


async def run_job(
    manifest: dict[str, Any],
    target: Target,
    *,
    on_interrupt: OnInterrupt,
    logs: bool,
    replica: str | None,
    report: Path | None,
    timeout: float | None,  # noqa: ASYNC109 - the command's option
) -> Exit:
    """Create the job and show it until it ends; interrupted, or after `timeout` seconds, part with it as asked.

    `report` is where to write a page about the job that has ended.

    Raises:
        CommandError: it can't be created, or the server went away for good.
    """
    with first_signal() as interrupted:
        async with connect(target) as client:
            job = await _create(client, manifest, target)
            following = asyncio.create_task(_follow(client, job, logs, replica, report))
            await asyncio.wait({following, interrupted}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                return await following
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            if interrupted.done():
                code, why = interrupted.result(), "interrupted"
            else:
                code, why = Exit.TIMEOUT, f"not finished after {elapsed_text(timeout or 0)}"
            await _part(client, job, on_interrupt, why)
            return code


async def _create(client: "Client", manifest: dict[str, Any], target: Target) -> dict[str, Any]:
    from mxnet_operator.kube.client import ApiError  # noqa: PLC0415

    metadata = manifest["metadata"]
    namespace = target.namespace or metadata.get("namespace") or client.namespace
    if metadata.get("namespace", namespace) != namespace:
        raise CommandError(
            f"the manifest names the namespace {metadata['namespace']}, --namespace {namespace}", code=Exit.USAGE
        )
    kind = kind_of_job(manifest)
    served = Resource(kind.group, manifest["apiVersion"].rpartition("/")[2], kind.plural)
    try:
        job = await client.create(
            served.path(namespace), manifest, {"fieldManager": "mxjob", "fieldValidation": "Strict"}
        )
    except ApiError as error:
        if error.code == 409 and error.reason == "AlreadyExists":
            name = metadata.get("name") or metadata["generateName"]
            raise CommandError(
                f"a job {name} is there already in namespace {namespace}",
                hint=f"follow it: mxjob logs -f {name}; or delete it first: mxjob delete {name};"
                " or give metadata.generateName instead of a name",
                code=Exit.API,
            ) from error
        if error.code == 404 and not error.details.get("name"):  # else it is the namespace that isn't there
            raise not_served(kind, client.server) from error
        raise
    say(f"{kind.kind} {job['metadata']['name']} created in namespace {job['metadata']['namespace']}")
    return in_v1_words(job)


async def _follow(client: "Client", job: dict[str, Any], logs: bool, replica: str | None, report: Path | None) -> Exit:
    """Show the job until it ends, then say how it did."""
    name = job["metadata"]["name"]
    start = time.monotonic()
    with progress(show_log=logs) as shown:
        shown.job(job)
        follower = LogFollower(client, job, replica or main_replica(job), shown.log_line, on_wait=shown.waiting)
        follower.start()
        try:
            async with replicas_shown(client, job, shown):
                job = await _until_terminal(client, job, shown)
                await _finish(follower, shown)
        except DeletedError:
            say(f"job {name} was deleted by somebody else before it finished")
            return Exit.FAILED
        finally:
            with contextlib.suppress(Exception):
                await follower.cancel()
    if report is not None:
        await _write_report(client, job, report, shown)
    message, took = terminal_message(job), elapsed_text(time.monotonic() - start)
    if job_state(job) == SUCCEEDED:
        say(f"{message} ({took})", style="green")
        return Exit.OK
    say(f"job {name} failed after {took}:", style="red")
    say(message)
    return Exit.FAILED


async def _until_terminal(client: "Client", job: dict[str, Any], shown: Progress) -> dict[str, Any]:
    async with contextlib.aclosing(job_versions(client, job)) as changes:
        async for current in changes:
            shown.job(current)
            if job_state(current) in TERMINAL:
                return current
    raise DeletedError(job["metadata"]["name"])


async def _finish(follower: LogFollower, shown: Progress) -> None:
    from mxnet_operator.kube.errors import KubeError  # noqa: PLC0415

    try:
        await follower.finish()
    except KubeError as error:
        shown.note(f"the log can't be shown: {error}")


async def _write_report(client: "Client", job: dict[str, Any], path: Path, shown: Progress) -> None:
    from mxnet_operator.cli.run_report import write_report  # noqa: PLC0415 - draws, which takes a while to import

    pods: dict[str, dict[str, Any]] = {}
    path_of_pods = PODS.path(job["metadata"]["namespace"])
    with contextlib.suppress(TimeoutError):
        # Tracker, servers and whoever else is being stopped; the last that is seen of a pod counts.
        async with (
            asyncio.timeout(_REST_OF_PODS),
            contextlib.aclosing(collections(client, path_of_pods, pod_selector(job))) as changes,
        ):
            async for present in changes:
                pods |= present
                if all(_has_ended(pod) for pod in present.values()):
                    break
    await asyncio.to_thread(write_report, path, job, pods.values(), shown.training)
    say(f"report: {path}")


def _has_ended(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


async def _part(client: "Client", job: dict[str, Any], on_interrupt: OnInterrupt, why: str) -> None:
    """Leave a job that still runs, in the way that was asked for."""
    name, namespace = (job["metadata"][key] for key in ("name", "namespace"))
    if on_interrupt is OnInterrupt.KEEP:
        say(f"{why}: job {name} goes on; follow it with: mxjob logs -f {name} -n {namespace}")
        return
    say(f"{why}: deleting job {name}")
    if await delete_job(client, job):
        say("waiting until it is gone; Ctrl-C leaves now")
        await until_gone(client, job)
    say(f"job {name} is gone")
