"""`mxjob describe`: one job in full, with its replicas, events and the log of the replica that failed first."""

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from rich.text import Text

from mxnet_operator.api import names
from mxnet_operator.api.conditions import RUNNING, job_state
from mxnet_operator.api.job_url import job_page
from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.api.printable import printable_lines
from mxnet_operator.cli.command import asks_server
from mxnet_operator.cli.errors import Exit
from mxnet_operator.cli.output.progress import training_text
from mxnet_operator.cli.output.replica_state import ReplicaState, first_failed, replica_state
from mxnet_operator.cli.output.tables import BLANK, STYLES, write_table
from mxnet_operator.cli.output.terminal import data_console
from mxnet_operator.cli.output.times import job_duration, since
from mxnet_operator.cli.running.local_files import files_written, is_local
from mxnet_operator.cli.server.connection import JobNameArgument, Target, connect
from mxnet_operator.cli.server.job_kinds import get_job
from mxnet_operator.client.job_client import JobClient, JobRef
from mxnet_operator.client.job_events import event_time, job_events
from mxnet_operator.client.jobs import kind_of_job, replicas
from mxnet_operator.client.pod_log import log_lines
from mxnet_operator.client.training import compare_workers, main_training
from mxnet_operator.readers.pods import in_order
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.training_status import status_summary
from mxnet_operator.readers.volumes import kept_volumes

EXAMPLES = """
[bold]Example[/]

  mxjob describe digits -n team-a
"""

_LOG_LINES: Final = 10
_MOST_REPLICAS: Final = 100
_MOST_EVENTS: Final = 20
_INDENT: Final = "  "


@asks_server
async def describe(target: Target, *, name: JobNameArgument) -> Exit:
    """Show a job in full, with its replicas, events and files, and the last log lines of the first failed replica."""
    async with connect(target) as client:
        job = await get_job(client, target.namespace or client.namespace, name)
        pods = in_order(await JobClient(client).replica_pods(JobRef.of(job)))
        states = [replica_state(pod) for pod in pods]
        events = await job_events(client, job)
        failed = first_failed(states)
        lines: list[str] = []
        if failed is not None:
            log = log_lines(client, job["metadata"]["namespace"], failed.pod, tail=_LOG_LINES)
            lines = [part async for line in log for part in printable_lines(line)]
        training = None
        if job_state(job) == RUNNING:
            training, _ = await main_training(client, job)
        workers = await compare_workers(client, job, training or TrainingLog())
        new = await asyncio.to_thread(files_written, job, pods) if is_local(client.server) else []
    files = [*map(str, new), *map(str, kept_volumes(job))]
    write_description(job, states, events=events, lines=lines, files=files, workers=workers, training=training)
    return Exit.OK


def write_description(
    job: dict[str, Any],
    states: Sequence[ReplicaState] = (),
    *,
    events: Sequence[dict[str, Any]] = (),
    lines: Sequence[str] = (),
    files: Sequence[str] = (),
    workers: Mapping[str, TrainingLog] = MappingProxyType({}),
    training: TrainingLog | None = None,
) -> None:
    """Write a job in full, each section under its own heading.

    Args:
        job: The job, in the words of v1.
        states: States of its replicas.
        events: Its events, the newest last.
        lines: Last lines of the replica that failed first.
        files: Where what the job wrote is.
        workers: Newest lines of the workers' logs, which tell their ranks, and where they stand still.
        training: How far the training of a running job is.
    """
    _write_summary(job, training)
    _write_spec(job)
    _write_conditions(job)
    _write_replicas(job, states, workers)
    _write_events(events)
    _write_lines("Files", files)
    for replica, log in workers.items():
        _write_lines(f"Stack of {replica}, which stands still", log.stack)
    if failed := first_failed(states):
        code = failed.exit_code
        how = "failed" if code is None else f"exited with code {code}"
        _write_lines(f"Last lines of {failed.replica}, which {how}", lines)


def _write_lines(title: str, lines: Sequence[str]) -> None:
    if lines:
        _heading(title)
    for line in lines:
        data_console().print(_INDENT + line)


def _write_summary(job: dict[str, Any], training: TrainingLog | None) -> None:
    metadata, spec, status = job["metadata"], job["spec"], job.get("status") or {}
    policy, kind = spec.get("runPolicy") or {}, kind_of_job(job)
    state = job_state(job) or "new"
    if metadata.get("deletionTimestamp"):
        state += f", being deleted since {metadata['deletionTimestamp']}"
    counted, limit = status.get("restartsCountTowardsMax", 0), policy.get("backoffLimit")
    restarts = f"{status.get('restarts', 0)}"
    if limit is not None:
        restarts += f" ({counted} of at most {limit} after failures)"
    read = [] if training is None else [each for each in (training_text(training), *training.warnings) if each]
    rows = {
        "Name": metadata["name"],
        "Namespace": metadata["namespace"],
        "State": state,
        "Kind": "" if kind is MXJOB else f"{kind.kind} of {job['apiVersion']}",
        "Format": status.get("form", ""),
        "Mode": spec.get("jobMode", ""),
        "Created": _when(metadata.get("creationTimestamp")),
        "Started": _when(status.get("startTime")),
        "Completed": _when(status.get("completionTime")),
        "Duration": job_duration(job),
        "Training": "; ".join(read or status_summary(job)),
        "Restarts": restarts,
        "Page": job_page(job),
        "Run policy": ", ".join(f"{key} {_plain(value)}" for key, value in policy.items()),
        "Labels": ", ".join(f"{key}={value}" for key, value in (metadata.get("labels") or {}).items()),
    }
    for label, value in rows.items():
        if value:
            line = Text(f"{label + ':':<12}", style="bold")
            line.append(value, style=STYLES.get(value, "not bold") if label == "State" else "not bold")
            data_console().print(line)


def _write_spec(job: dict[str, Any]) -> None:
    _heading("Spec")
    given = {names.canonical_type(key): spec for key, spec in job["spec"]["mxReplicaSpecs"].items()}
    rows = []
    for kind in (kind for kind in names.REPLICA_TYPES if kind in given):
        main = names.main_container(given[kind]["template"]["spec"].get("containers"))
        resources = main.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        rows.append(
            [
                kind,
                str(given[kind].get("replicas", 1)),
                given[kind].get("restartPolicy", ""),
                main.get("image", ""),
                ", ".join(f"{name} {amount}" for name, amount in asked.items()),
            ]
        )
    write_table(["TYPE", "REPLICAS", "RESTART POLICY", "IMAGE", "RESOURCES"], rows, indent=_INDENT)


def _write_conditions(job: dict[str, Any]) -> None:
    conditions = (job.get("status") or {}).get("conditions") or []
    if not conditions:
        return
    _heading("Conditions")
    rows = []
    for condition in conditions:
        first, *more = (condition.get("message") or "").splitlines() or [""]
        changed = since(condition.get("lastTransitionTime"))
        rows.append([condition["type"], condition["status"], changed, condition.get("reason", ""), first])
        # A failure's message goes on with the last lines of its log, in the last column only.
        rows += [[BLANK, BLANK, BLANK, BLANK, line or BLANK] for line in more]
    write_table(["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"], rows, indent=_INDENT)


def _write_replicas(job: dict[str, Any], states: Sequence[ReplicaState], workers: Mapping[str, TrainingLog]) -> None:
    _heading("Replicas")
    if states:
        shown = [*[one for one in states if one.has_failed], *[one for one in states if not one.has_failed]]
        kept = {one.pod for one in shown[:_MOST_REPLICAS]}
        rows = []
        for one in (each for each in states if each.pod in kept):
            log = workers.get(one.replica)
            pod = one.pod if log is None or log.rank is None else f"{one.pod} (rank {log.rank})"
            code = "" if one.exit_code is None else str(one.exit_code)
            rows.append([pod, one.phase, one.state, code, since(one.since), one.node, one.summary])
        heading = ["POD", "PHASE", "STATE", "EXIT CODE", "SINCE", "NODE", "WHY"]
        write_table(heading, rows, indent=_INDENT)
    left_out, missing = max(0, len(states) - _MOST_REPLICAS), len(replicas(job)) - len(states)
    if left_out:
        data_console().print(f"{_INDENT}and {left_out} pods more")
    if missing > 0:
        data_console().print(f"{_INDENT}{missing} of {len(replicas(job))} replicas have no pod")


def _write_events(events: Sequence[dict[str, Any]]) -> None:
    if not events:
        return
    left_out = len(events) - _MOST_EVENTS
    _heading(f"Events (the last {_MOST_EVENTS} of {len(events)})" if left_out > 0 else "Events")
    rows = []
    for event in events[-_MOST_EVENTS:]:
        times = (event.get("series") or {}).get("count") or event.get("count") or 1
        message = " ".join((event.get("message") or "").split())
        rows.append(
            [
                since(event_time(event)),
                event.get("type", ""),
                event.get("reason", ""),
                event["involvedObject"].get("name", ""),
                message + (f" ({times} times)" if times > 1 else ""),
            ]
        )
    write_table(["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], rows, indent=_INDENT)


def _heading(text: str) -> None:
    data_console().print(Text(f"\n{text}:", style="bold"))


def _when(time: str | None) -> str:
    return f"{time} ({since(time)} ago)" if time else ""


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)
