"""Output of `mxjob describe`: a job in full, each section under its own heading."""

from dataclasses import dataclass, field
from typing import Any, Final

from rich.text import Text

from mxnet_operator.api import names
from mxnet_operator.api.conditions import job_state
from mxnet_operator.api.job_url import job_page
from mxnet_operator.api.kinds import MXJOB
from mxnet_operator.cli.output.progress import training_text
from mxnet_operator.cli.output.replica_state import ReplicaState
from mxnet_operator.cli.output.tables import BLANK, STYLES, write_table
from mxnet_operator.cli.output.terminal import data_console
from mxnet_operator.cli.output.times import job_duration, since
from mxnet_operator.client.job_events import event_time
from mxnet_operator.client.jobs import kind_of_job, replicas
from mxnet_operator.readers.training_log import TrainingLog
from mxnet_operator.readers.training_status import status_summary

MOST_REPLICAS: Final = 100
MOST_EVENTS: Final = 20

_INDENT: Final = "  "


@dataclass(frozen=True)
class JobDetails:
    """Data about a job besides the object itself: replicas, events and the end of a failed replica's log."""

    replicas: list[ReplicaState]
    events: list[dict[str, Any]]
    failed: ReplicaState | None
    """The replica that failed first; None where none has."""
    lines: list[str]
    """The last lines of its log."""
    files: list[str]
    """Where what the job wrote is."""
    ranks: dict[str, int]
    """Ranks of workers by replica, where their logs tell."""
    training: TrainingLog | None = None
    """How far the training of a running job is."""
    stacks: dict[str, list[str]] = field(default_factory=dict)
    """Python stacks of workers that stand still, by replica."""


def write_description(job: dict[str, Any], details: JobDetails) -> None:
    _write_summary(job, details.training)
    _write_spec(job)
    _write_conditions(job)
    _write_replicas(job, details)
    _write_events(details.events)
    if details.files:
        _heading("Files")
        for each in details.files:
            data_console().print(_INDENT + each)
    for replica, stack in details.stacks.items():
        _heading(f"Stack of {replica}, which stands still")
        for line in stack:
            data_console().print(_INDENT + line)
    if details.failed is not None and details.lines:
        code = details.failed.exit_code
        how = "failed" if code is None else f"exited with code {code}"
        _heading(f"Last lines of {details.failed.replica}, which {how}")
        for line in details.lines:
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
        "Training": _training(job, training),
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


def _training(job: dict[str, Any], log: TrainingLog | None) -> str:
    """Return how far the training is, by the log; by the status where that says nothing, or can't be read."""
    read = [] if log is None else [each for each in (training_text(log), *log.warnings) if each]
    return "; ".join(read or status_summary(job))


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


def _write_replicas(job: dict[str, Any], details: JobDetails) -> None:
    _heading("Replicas")
    states = details.replicas
    if states:
        shown = [*[one for one in states if one.has_failed], *[one for one in states if not one.has_failed]]
        kept = {one.pod for one in shown[:MOST_REPLICAS]}
        rows = [_replica_row(one, details.ranks.get(one.replica)) for one in states if one.pod in kept]
        heading = ["POD", "PHASE", "STATE", "EXIT CODE", "SINCE", "NODE", "WHY"]
        write_table(heading, rows, indent=_INDENT)
    left_out, missing = max(0, len(states) - MOST_REPLICAS), len(replicas(job)) - len(states)
    if left_out:
        data_console().print(f"{_INDENT}and {left_out} pods more")
    if missing > 0:
        data_console().print(f"{_INDENT}{missing} of {len(replicas(job))} replicas have no pod")


def _replica_row(one: ReplicaState, rank: int | None) -> list[str]:
    pod = one.pod if rank is None else f"{one.pod} (rank {rank})"
    code = "" if one.exit_code is None else str(one.exit_code)
    return [pod, one.phase, one.state, code, since(one.since), one.node, one.summary]


def _write_events(events: list[dict[str, Any]]) -> None:
    if not events:
        return
    left_out = len(events) - MOST_EVENTS
    _heading(f"Events (the last {MOST_EVENTS} of {len(events)})" if left_out > 0 else "Events")
    rows = []
    for event in events[-MOST_EVENTS:]:
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
