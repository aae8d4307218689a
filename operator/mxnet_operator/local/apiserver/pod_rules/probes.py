"""Rules for probes and lifecycle hooks of a container."""

import re
from collections.abc import Iterator
from typing import Any, Final

from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.pod_rules.fields import choice_errors, port_errors, port_name_errors
from mxnet_operator.local.apiserver.statuses import forbidden_field, required

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES: Final = ("HTTP", "HTTPS")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_HEADER_RULE: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')"
)


def probe_errors(path: str, container: Object, field: str, grace: int) -> Iterator[FieldError]:
    """Validate a probe, if the container has it."""
    if (probe := container.get(field)) is None:
        return
    path = f"{path}.{field}"
    yield from _handler_errors(path, probe, grace)
    for count in _COUNTS:
        if probe.get(count, 0) < 0:
            yield invalid(f"{path}.{count}", probe[count], "must be greater than or equal to 0")
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must be greater than 0")
    if field == "readinessProbe":
        if seconds is not None:
            yield invalid(f"{path}.terminationGracePeriodSeconds", seconds, "must not be set for readinessProbes")
    elif (probe.get("successThreshold") or 1) != 1:
        yield invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def lifecycle_errors(path: str, lifecycle: Object, grace: int) -> Iterator[FieldError]:
    """Validate the hooks of a container that is stopped within `grace` seconds."""
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            yield from _handler_errors(f"{path}.{hook}", lifecycle[hook], grace)


def _handler_errors(path: str, handler: Object, grace: int) -> Iterator[FieldError]:
    kind, *others = [name for name in _HANDLERS if handler.get(name) is not None] or [""]
    if not kind:
        yield required(path, "must specify a handler type")
        return
    where, what = f"{path}.{kind}", handler[kind]
    if kind == "exec" and not what.get("command"):
        yield required(f"{where}.command")
    elif kind == "httpGet":
        yield from _any_port_errors(f"{where}.port", what.get("port", 0))
        yield from choice_errors(where, what, "scheme", _SCHEMES)
        for header in what.get("httpHeaders") or ():
            if not _HEADER.fullmatch(header.get("name") or ""):
                yield invalid(f"{where}.httpHeaders", header.get("name") or "", _HEADER_RULE)
    elif kind in ("tcpSocket", "grpc"):
        yield from _any_port_errors(f"{where}.port", what.get("port", 0))
    elif kind == "sleep" and not 0 <= what.get("seconds", 0) <= grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield invalid(where, what.get("seconds", 0), detail)
    for name in others:
        yield forbidden_field(f"{path}.{name}", "may not specify more than 1 handler type")


def _any_port_errors(path: str, port: Any) -> Iterator[FieldError]:
    yield from port_name_errors(path, port) if isinstance(port, str) else port_errors(path, port)
