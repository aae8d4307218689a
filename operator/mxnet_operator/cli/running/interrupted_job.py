"""Interruption of a command that follows a job: delete, stop or keep the job, or decide by its Argo Workflow."""

import asyncio
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.interrupts import can_ask, typed_line
from mxnet_operator.cli.output.terminal import say
from mxnet_operator.cli.output.times import moment
from mxnet_operator.cli.running.run_outputs import Record
from mxnet_operator.cli.server.connection import Client
from mxnet_operator.client.job_actions import request_stop, until_stopped
from mxnet_operator.client.job_client import Deletion, Ending, JobClient, JobRef, Leave, Request
from mxnet_operator.client.jobs import until_gone
from mxnet_operator.kube.errors import ApiUnavailable, KubeError
from mxnet_operator.kube.resources import PODS, WORKFLOWS
from mxnet_operator.readers.argo_workflow import is_stopped, why_over

_GRACE: Final = 20.0
"""Seconds to read a workflow and delete its job: less than a pod's default grace period of 30."""
_POD_NAME: Final = "POD_NAME"
"""Environment variable with the name of the step's pod."""
_DEADLINE: Final = "ARGO_DEADLINE"
"""Environment variable with the time when Argo ends the step for the workflow's deadline; year 1 without one."""
_ON_EXIT_LABEL: Final = "workflows.argoproj.io/on-exit"
"""Label of the pods of a workflow's exit handler, which `argo stop` does not end."""
_EARLY: Final = timedelta(seconds=5)
"""Tolerance: a pod may be stopped this much before its deadline, which has whole seconds."""

Ours = Callable[[dict[str, Any]], bool]
"""Whether a job, read just before its deletion, still belongs to this run."""


class OnInterrupt(StrEnum):
    DELETE = "delete"
    STOP = "stop"
    KEEP = "keep"


async def choice(name: str, code: Exit) -> OnInterrupt:
    """Ask the user who pressed Ctrl-C on a terminal what to do with the job; any other interruption deletes it."""
    if code is not Exit.INTERRUPTED or not can_ask():
        return OnInterrupt.DELETE
    while True:
        say(f"job {name}: keep it running, or stop it? [K/s] Ctrl-C deletes it.")
        answer = await typed_line()
        if answer is None:
            return OnInterrupt.DELETE
        if answer.lower() in {"", "k", "keep"}:
            return OnInterrupt.KEEP
        if answer.lower() in {"s", "stop"}:
            return OnInterrupt.STOP


async def finish_interrupted(client: Client, record: Record, how: OnInterrupt, why: str, ours: Ours) -> None:
    """Delete, stop or keep the job of an interrupted command; a job that is no longer `ours` is kept."""
    job = record.job
    if job is None:
        record.say(f"{why} before the job was created")
        return
    name, namespace = (job["metadata"][key] for key in ("name", "namespace"))
    if how is OnInterrupt.KEEP:
        record.say(f"{why}: job {name} keeps running; follow it with: mxjob logs -f {name} -n {namespace}")
        return
    if how is OnInterrupt.STOP:
        record.say(f"{why}: stopping job {name}")
        await request_stop(client, job)
        state = await until_stopped(client, job, lambda _: None)
        say(f"job {name} has ended: {state}; its logs and files stay until: mxjob delete {name} -n {namespace}")
        return
    record.say(f"{why}: deleting job {name}")
    ended = await _delete(client, job, ours)
    if ended.why:
        record.say(f"{why}: job {name} was not deleted: {ended.why}")
        return
    if ended.done:
        say("waiting until it is gone; Ctrl-C exits now")
        await until_gone(client, job)
    say(f"job {name} is gone")


async def part_as_step(client: Client, record: Record, workflow: str, code: Exit, ours: Ours) -> Exit:
    """Delete the job if its workflow no longer needs it, within a pod's grace period; else keep it.

    A job that is no longer `ours` is kept too.

    Returns the exit code: `code`, or that of a time-out if the step's deadline has passed.
    """
    job = record.job
    if job is None:
        record.say("interrupted before the job was created")
        return code
    why, namespace = "", job["metadata"]["namespace"]
    try:
        async with asyncio.timeout(_GRACE):
            if over := await why_unwanted(client, job, workflow, os.environ):
                why = f"workflow {workflow} {over}"
            elif time_is_over(os.environ, await _own_pod(client, namespace, os.environ), datetime.now(UTC)):
                why, code = "the step's deadline has passed", Exit.TIMEOUT
            ended = await _delete(client, job, ours) if why else Ending(done=False)
    except TimeoutError:
        problem = f"the API server did not answer within {_GRACE:g} s"
        record.message = f"{why or 'interrupted'}: job {record.name} was not deleted: {problem}"
    except KubeError as error:
        problem = "did not answer" if isinstance(error, ApiUnavailable) else "rejected the request"
        record.message = f"{why or 'interrupted'}: job {record.name} was not deleted: the API server {problem}: {error}"
    else:
        kept = f"interrupted, but workflow {workflow} is still running: job {record.name} is kept for the next attempt"
        deleted = f"job {record.name} was not deleted: {ended.why}" if ended.why else f"job {record.name} is deleted"
        record.message = f"{why}: {deleted}" if why else kept
    say(record.message)
    return code


async def _delete(client: Client, job: dict[str, Any], ours: Ours) -> Ending:
    """Delete a job, not a later one of its name, if it is still `ours`."""
    ref = JobRef.of(job)

    def decide(current: Mapping[str, Any] | None) -> Request:
        if current is None or current["metadata"]["uid"] != ref.uid:
            return Leave()
        return Deletion.of(current) if ours(dict(current)) else Leave("it no longer belongs to this run")

    return await JobClient(client).end_job(ref, decide)


async def why_unwanted(client: Client, job: dict[str, Any], name: str, environment: Mapping[str, str]) -> str:
    """Return why the workflow of this name no longer needs its job, such as "is being deleted"; empty if it does.

    A stopped workflow needs the jobs of its exit handler, among whose pods may be that of this `environment`.

    Raises:
        ApiError, ApiUnavailable: the request fails.
    """
    namespace = job["metadata"]["namespace"]
    workflow = await client.find(WORKFLOWS.path(namespace, name))
    why = why_over(workflow, job)
    if why or workflow is None or not is_stopped(workflow):
        return why
    pod = await _own_pod(client, namespace, environment) or {"metadata": {}}
    return "" if _ON_EXIT_LABEL in (pod["metadata"].get("labels") or {}) else "is being shut down (Stop)"


async def _own_pod(client: Client, namespace: str, environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Read the pod of the step that this process is; None where that isn't known."""
    name = environment.get(_POD_NAME)
    return await client.find(PODS.path(namespace, name)) if name else None


def time_is_over(environment: Mapping[str, str], pod: dict[str, Any] | None, now: datetime) -> bool:
    """Whether the deadline has passed that the workflow, or the step's `timeout`, sets for a step's pod."""
    now += _EARLY
    deadline = moment(environment.get(_DEADLINE))
    if deadline is not None and deadline.year > 1 and now >= deadline:
        return True
    seconds = ((pod or {}).get("spec") or {}).get("activeDeadlineSeconds")
    started = moment(((pod or {}).get("status") or {}).get("startTime"))
    return seconds is not None and started is not None and now >= started + timedelta(seconds=seconds)
