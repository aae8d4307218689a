"""Rules for a pod as a whole, in the order in which kube-apiserver reports what is wrong."""

from collections.abc import Iterator, Sequence
from typing import Final

from mxnet_operator.api.metadata_rules import key_errors, label_errors
from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.metadata_rules import dns_label_errors, subdomain_errors
from mxnet_operator.local.apiserver.pod_rules.containers import all_container_errors, image_errors
from mxnet_operator.local.apiserver.pod_rules.fields import address_errors, choice_errors, id_errors, range_errors
from mxnet_operator.local.apiserver.pod_rules.placement import affinity_errors, spread_errors, toleration_errors
from mxnet_operator.local.apiserver.pod_rules.volumes import all_volume_errors
from mxnet_operator.local.apiserver.statuses import forbidden_field, required

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_GROUP_POLICIES: Final = ("Always", "OnRootMismatch")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_NAMESERVERS: Final = 3
_SEARCHES: Final = 32


def pod_errors(pod: Object) -> Iterator[FieldError]:
    """Validate a pod whose types are right and whose defaults are filled in."""
    spec = pod.get("spec") or {}
    volumes: list[str] = []
    yield from all_volume_errors(spec, volumes)
    yield from all_container_errors(spec, volumes)
    yield from _host_network_errors(spec)
    yield from choice_errors("spec", spec, "restartPolicy", _RESTART_POLICIES)
    yield from choice_errors("spec", spec, "dnsPolicy", _DNS_POLICIES)
    yield from label_errors(spec.get("nodeSelector") or {}, "spec.nodeSelector")
    yield from _security_errors("spec.securityContext", spec)
    yield from affinity_errors("spec.affinity", spec.get("affinity") or {})
    yield from _dns_errors("spec.dnsConfig", spec)
    for position, gate in enumerate(spec.get("readinessGates") or ()):
        condition = gate.get("conditionType") or ""
        yield from key_errors(condition, f"spec.readinessGates[{position}].conditionType", condition)
    yield from _gate_errors(spec)
    yield from spread_errors("spec.topologySpreadConstraints", spec.get("topologySpreadConstraints") or ())
    for field in ("serviceAccountName", "nodeName"):
        if spec.get(field):
            yield from subdomain_errors(f"spec.{field}", spec[field])
    if (deadline := spec.get("activeDeadlineSeconds")) is not None:
        yield from range_errors("spec.activeDeadlineSeconds", deadline, 1, 2**31 - 1)
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from dns_label_errors(f"spec.{field}", spec[field])
    yield from toleration_errors("spec.tolerations", spec.get("tolerations") or ())
    yield from _alias_errors(spec.get("hostAliases") or ())
    for field in ("priorityClassName", "runtimeClassName"):
        if spec.get(field):
            yield from subdomain_errors(f"spec.{field}", spec[field])
    yield from choice_errors("spec", spec, "preemptionPolicy", _PREEMPTION_POLICIES)
    yield from image_errors(spec)


def _host_network_errors(spec: Object) -> Iterator[FieldError]:
    if not spec.get("hostNetwork"):
        return
    for position, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort") != port.get("containerPort"):
                where = f"spec.containers[{position}].ports[{number}].hostPort"
                yield invalid(where, port.get("hostPort"), "must match `containerPort` when `hostNetwork` is true")


def _security_errors(path: str, spec: Object) -> Iterator[FieldError]:
    context = spec.get("securityContext") or {}
    yield from id_errors(path, context, "fsGroup", "runAsUser", "runAsGroup")
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        yield from range_errors(f"{path}.supplementalGroups[{position}]", group, 0, 2**31 - 1)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{path}.shareProcessNamespace", value=True, why=detail)
    yield from choice_errors(path, context, "fsGroupChangePolicy", _GROUP_POLICIES)


def _dns_errors(path: str, spec: Object) -> Iterator[FieldError]:
    config = spec.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not servers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", detail)
            return
    config = config or {}
    if len(servers) > _NAMESERVERS:
        yield invalid(f"{path}.nameservers", servers, f"must not have more than {_NAMESERVERS} nameservers")
    for position, server in enumerate(servers):
        yield from address_errors(f"{path}.nameservers[{position}]", server)
    searches = config.get("searches") or []
    if len(searches) > _SEARCHES:
        yield invalid(f"{path}.searches", searches, f"must not have more than {_SEARCHES} search paths")
    for position, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{position}]", "must not be empty")


def _gate_errors(spec: Object) -> Iterator[FieldError]:
    seen: set[str] = set()
    for position, gate in enumerate(spec.get("schedulingGates") or ()):
        path, name = f"spec.schedulingGates[{position}]", gate.get("name") or ""
        yield from key_errors(name, path, name)
        if name in seen:
            yield FieldError(path, "FieldValueDuplicate", f'Duplicate value: "{name}"')
        seen.add(name)
    if spec.get("nodeName") and seen:
        yield forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _alias_errors(aliases: Sequence[Object]) -> Iterator[FieldError]:
    for position, alias in enumerate(aliases):
        path = f"spec.hostAliases[{position}]"
        yield from address_errors(f"{path}.ip", alias.get("ip") or "")
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from subdomain_errors(f"{path}.hostnames[{number}]", name)
