"""Events of a job and of its pods."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mxnet_operator.client.jobs import pod_name, replicas
from mxnet_operator.kube.errors import ApiError
from mxnet_operator.kube.resources import EVENTS

if TYPE_CHECKING:
    from mxnet_operator.kube.client import Client


async def job_events(client: "Client", job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of the job, of its pods and of its pod group, deleted ones included, oldest first.

    An earlier job of the same name may have had pods of the same names: events before this job's creation are left out.
    """
    metadata = job["metadata"]
    path = EVENTS.path(metadata["namespace"])
    try:
        of_name = await client.list(path, {"fieldSelector": f"involvedObject.name={metadata['name']}"})
        of_pods = await client.list(path, {"fieldSelector": "involvedObject.kind=Pod"})
    except ApiError as error:
        if error.code != 403:
            raise
        return []  # permission to read jobs does not imply permission to read events
    own = {pod_name(metadata["name"], replica) for replica in replicas(job)}
    made = datetime.fromisoformat(metadata["creationTimestamp"])
    found = of_name["items"] + [each for each in of_pods["items"] if each["involvedObject"].get("name") in own]
    events = (each for each in found if event_time(each) >= made and not _of_another_job(each, job))
    return sorted(events, key=event_time)


def _of_another_job(event: dict[str, Any], job: dict[str, Any]) -> bool:
    about = event["involvedObject"]
    return bool(about.get("kind") == job["kind"] and about.get("uid") != job["metadata"]["uid"])


def event_time(event: dict[str, Any]) -> datetime:
    """Return when an event last happened; its field and precision depend on the component that wrote it."""
    series = event.get("series") or {}
    found = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
    )
    return datetime.fromisoformat(found) if found else datetime.min.replace(tzinfo=UTC)
