"""Rules for the containers of a pod."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mxnet_operator.api.metadata_rules import key_errors
from mxnet_operator.api.quantities import quantity
from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.metadata_rules import dns_label_errors
from mxnet_operator.local.apiserver.pod_rules.fields import choice_errors, id_errors, port_errors, port_name_errors
from mxnet_operator.local.apiserver.pod_rules.mounts import mount_errors
from mxnet_operator.local.apiserver.pod_rules.probes import lifecycle_errors, probe_errors
from mxnet_operator.local.apiserver.pod_rules.variables import environment_errors
from mxnet_operator.local.apiserver.statuses import forbidden_field, required

_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"
_NATIVE: Final = "kubernetes.io/"
_SIDECARS_ONLY: Final = "may not be set for init containers without restartPolicy=Always"


def all_container_errors(spec: Object, volumes: Sequence[str]) -> Iterator[FieldError]:
    """Validate the containers of a pod, then its init containers; `volumes` are what they may mount."""
    containers, init_containers = spec.get("containers") or [], spec.get("initContainers") or []
    if not containers:
        yield required("spec.containers")
    grace = spec.get("terminationGracePeriodSeconds", 30)
    taken: list[str] = []
    for position, container in enumerate(containers):
        path = f"spec.containers[{position}]"
        yield from _container_errors(path, container, volumes)
        yield from _repeated(path, container, taken)
        yield from lifecycle_errors(f"{path}.lifecycle", container.get("lifecycle") or {}, grace)
        for probe in _PROBES:
            yield from probe_errors(path, container, probe, grace)
        yield from choice_errors(path, container, "restartPolicy", _RESTART_POLICIES)
    yield from _host_port_errors("spec.containers", containers)
    for position, container in enumerate(init_containers):
        path = f"spec.initContainers[{position}]"
        yield from _container_errors(path, container, volumes)
        yield from choice_errors(path, container, "restartPolicy", _RESTART_POLICIES)
        yield from _repeated(path, container, taken)
        yield from _host_port_errors("spec.initContainers", [container])
        if container.get("restartPolicy") == "Always":
            yield from lifecycle_errors(f"{path}.lifecycle", container.get("lifecycle") or {}, grace)
            for probe in _PROBES:
                yield from probe_errors(path, container, probe, grace)
        else:
            for field in ("lifecycle", *_PROBES):
                if container.get(field) is not None:
                    yield forbidden_field(f"{path}.{field}", _SIDECARS_ONLY)


def image_errors(spec: Object) -> Iterator[FieldError]:
    """Validate what a pod's images may not have and a template's may."""
    for field in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(field) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                yield invalid(f"spec.{field}[{position}].image", image, detail)


def _repeated(path: str, container: Object, taken: list[str]) -> Iterator[FieldError]:
    name = container.get("name") or ""
    if name and name in taken:
        yield FieldError(f"{path}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"')
    taken.append(name)


def _container_errors(path: str, container: Object, volumes: Sequence[str]) -> Iterator[FieldError]:
    if not container.get("name"):
        yield required(f"{path}.name")
    else:
        yield from dns_label_errors(f"{path}.name", container["name"])
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from choice_errors(path, container, "terminationMessagePolicy", _MESSAGE_POLICIES)
    yield from _port_list_errors(f"{path}.ports", container.get("ports") or ())
    yield from environment_errors(path, container)
    yield from mount_errors(f"{path}.volumeMounts", container, volumes)
    yield from choice_errors(path, container, "imagePullPolicy", _PULL_POLICIES)
    yield from _resource_errors(f"{path}.resources", container.get("resources") or {})
    yield from _security_errors(f"{path}.securityContext", container.get("securityContext") or {})


def _port_list_errors(path: str, ports: Iterable[Object]) -> Iterator[FieldError]:
    names: set[str] = set()
    for position, port in enumerate(ports):
        where, name = f"{path}[{position}]", port.get("name") or ""
        if name and (wrong := list(port_name_errors(f"{where}.name", name))):
            yield from wrong
        elif name in names:
            yield FieldError(f"{where}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"')
        elif name:
            names.add(name)
        # 0 is what a Go field holds that isn't set
        yield from port_errors(f"{where}.containerPort", port.get("containerPort") or None)
        if port.get("hostPort"):
            yield from port_errors(f"{where}.hostPort", port["hostPort"])
        yield from choice_errors(where, port, "protocol", _PROTOCOLS)


def _host_port_errors(path: str, containers: Sequence[Object]) -> Iterator[FieldError]:
    taken: set[str] = set()
    for position, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            bound = f"{port.get('protocol', 'TCP')}/{port.get('hostIP') or ''}/{port['hostPort']}"
            if bound in taken:
                where = f"{path}[{position}].ports[{number}].hostPort"
                yield FieldError(where, "FieldValueDuplicate", f'Duplicate value: "{bound}"')
            taken.add(bound)


def _resource_errors(path: str, resources: Object) -> Iterator[FieldError]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, amount in limits.items():
        yield from _amount_errors(f"{path}.limits[{name}]", name, amount)
    for name, amount in requests.items():
        yield from _amount_errors(f"{path}.requests[{name}]", name, amount)
        limit, overcommits = limits.get(name), _NATIVE in name or ("/" not in name and not name.startswith(_HUGE_PAGES))
        if limit is None:
            if not overcommits:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif not overcommits and quantity(amount) != quantity(limit):
            yield invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")
        elif quantity(amount) > quantity(limit):
            yield invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}")
    names = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in names) and not names & {"cpu", "memory"}:
        yield forbidden_field(path, "HugePages require cpu or memory")


def _amount_errors(path: str, name: str, amount: str) -> Iterator[FieldError]:
    wrong = list(key_errors(name, path, name))
    is_known = name in _RESOURCES or name.startswith(_HUGE_PAGES)
    yield from wrong
    if "/" not in name and not is_known:
        if not wrong:
            yield invalid(path, name, "must be a standard resource type or fully qualified")
        yield invalid(path, name, "must be a standard resource for containers")
    elif "/" in name and _NATIVE not in name and not _is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")
    number = quantity(amount)
    if number < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    if _is_extended(name) and number % 1:
        yield invalid(path, amount, "must be an integer")


def _is_extended(name: str) -> bool:
    """Whether the name is that of an extended resource, such as nvidia.com/gpu."""
    if "/" not in name or _NATIVE in name or name.startswith("requests."):
        return False
    return not any(key_errors(f"requests.{name}", "", name))


def _security_errors(path: str, context: Object) -> Iterator[FieldError]:
    yield from id_errors(path, context, "runAsUser", "runAsGroup")
    if context.get("allowPrivilegeEscalation") is not False:
        return
    if context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(path, context, detail)
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        yield invalid(path, context, detail)
