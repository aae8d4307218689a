"""Container logs: their source, and the API server's checks of a request."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from mxnet_operator.api.structural import invalid as invalid_field
from mxnet_operator.local.apiserver.json_values import Object, at
from mxnet_operator.local.apiserver.requests import truth
from mxnet_operator.local.apiserver.resources import PODS
from mxnet_operator.local.apiserver.statuses import bad_request, invalid

_LOG_OPTIONS = replace(PODS, kind="PodLogOptions")


@dataclass(frozen=True)
class LogRequest:
    """Request for a container's log; what isn't asked for is None."""

    container: str
    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


class LogSource(Protocol):
    """Source of container logs, such as the kubelet."""

    def open(self, pod_uid: str, request: LogRequest) -> AsyncIterator[bytes]:
        """Yield the log in chunks, with `follow` until the container ends."""
        ...


def log_request(pod: Object, query: Mapping[str, str]) -> LogRequest:
    """Parse a request for a pod's log.

    Raises:
        StatusError: 400 where it names no container of the pod, or doesn't say which of several; 422 where a number is
            too small.
    """
    name = pod["metadata"]["name"]
    wanted = query.get("container", "")
    main = [each["name"] for each in at(pod, "spec", "containers", default=[])]
    initial = [each["name"] for each in at(pod, "spec", "initContainers", default=[])]
    if not wanted:
        if len(main) > 1:
            choices = f"choose one of: [{' '.join(main)}]" + (
                f" or one of the init containers: [{' '.join(initial)}]" if initial else ""
            )
            raise bad_request(f"a container name must be specified for pod {name}, {choices}")
        wanted = main[0]
    elif wanted not in main + initial:
        raise bad_request(f"container {wanted} is not valid for pod {name}")
    statuses = at(pod, "status", "containerStatuses", default=[])
    status: Object = next((each for each in statuses if each.get("name") == wanted), {})
    waiting = at(status, "state", "waiting", "reason")
    if waiting:
        raise bad_request(f'container "{wanted}" in pod "{name}" is waiting to start: {waiting}')
    if truth(query.get("previous")):
        raise bad_request(f'previous terminated container "{wanted}" in pod "{name}" not found')
    return LogRequest(
        wanted,
        follow=truth(query.get("follow")),
        timestamps=truth(query.get("timestamps")),
        tail_lines=_number(name, query, "tailLines", 0),
        since=_since(name, query),
        limit_bytes=_number(name, query, "limitBytes", 1),
    )


def _number(pod: str, query: Mapping[str, str], field: str, least: int) -> int | None:
    text = query.get(field, "")
    if not text:
        return None
    try:
        number = int(text)
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error
    if number < least:
        detail = "must be greater than 0" if least else "must be greater than or equal to 0"
        raise invalid(_LOG_OPTIONS, pod, [invalid_field(field, number, detail)])
    return number


def _since(pod: str, query: Mapping[str, str]) -> datetime | None:
    if (seconds := _number(pod, query, "sinceSeconds", 1)) is not None:
        return datetime.now(UTC) - timedelta(seconds=seconds)
    if not (text := query.get("sinceTime", "")):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        raise bad_request(f'sinceTime: Invalid value: "{text}": must be a time in RFC 3339') from error
