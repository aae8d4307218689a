"""Rules for what says where a pod may run: tolerations, affinity, topology spread."""

from collections.abc import Iterator, Sequence
from typing import Final

from mxnet_operator.api.metadata_rules import broken_value_rules, key_errors, label_errors
from mxnet_operator.api.structural import FieldError, invalid
from mxnet_operator.local.apiserver.json_values import Object
from mxnet_operator.local.apiserver.metadata_rules import dns_label_errors, subdomain_errors
from mxnet_operator.local.apiserver.pod_rules.fields import choice_errors
from mxnet_operator.local.apiserver.statuses import forbidden_field, required, unsupported

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_OF_SET: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_OF_NONE: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_NO_OPERATOR: Final = "not a valid selector operator"
_WITHOUT_SELECTOR: Final = "must not be specified when labelSelector is not set"
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION: Final = ("Honor", "Ignore")


def toleration_errors(path: str, tolerations: Sequence[Object]) -> Iterator[FieldError]:
    """Validate the tolerations of a pod."""
    for position, toleration in enumerate(tolerations):
        where = f"{path}[{position}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        value, effect = toleration.get("value") or "", toleration.get("effect") or ""
        if key:
            yield from key_errors(key, f"{where}.key", key)
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{where}.operator", operator, detail)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{where}.effect", effect, detail)
        if operator in ("", "Equal"):
            if rules := list(broken_value_rules(value)):
                yield invalid(f"{where}.operator", value, ";".join(rules))
        elif operator == "Exists":
            if value:
                yield invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            yield unsupported(f"{where}.operator", operator, known)
        if effect and effect not in _EFFECTS:
            yield unsupported(f"{where}.effect", effect, _EFFECTS)


def affinity_errors(path: str, affinity: Object) -> Iterator[FieldError]:
    """Validate the affinity of a pod."""
    if (nodes := affinity.get("nodeAffinity")) is not None:
        yield from _node_affinity_errors(f"{path}.nodeAffinity", nodes)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind) or {}
        for position, term in enumerate(pods.get(_REQUIRED) or ()):
            yield from _pod_term_errors(f"{path}.{kind}.{_REQUIRED}[{position}]", term)
        for position, weighted in enumerate(pods.get(_PREFERRED) or ()):
            where = f"{path}.{kind}.{_PREFERRED}[{position}]"
            yield from _weight_errors(where, weighted)
            yield from _pod_term_errors(f"{where}.podAffinityTerm", weighted.get("podAffinityTerm") or {})


def _node_affinity_errors(path: str, affinity: Object) -> Iterator[FieldError]:
    if (needed := affinity.get(_REQUIRED)) is not None:
        terms = needed.get("nodeSelectorTerms") or ()
        if not terms:
            yield required(f"{path}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term")
        for position, term in enumerate(terms):
            yield from _node_term_errors(f"{path}.{_REQUIRED}.nodeSelectorTerms[{position}]", term, values=True)
    for position, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{position}]"
        yield from _weight_errors(where, preferred)
        yield from _node_term_errors(f"{where}.preference", preferred.get("preference") or {}, values=False)


def _weight_errors(path: str, weighted: Object) -> Iterator[FieldError]:
    if not 0 < weighted.get("weight", 0) <= 100:
        yield invalid(f"{path}.weight", weighted.get("weight", 0), "must be in the range 1-100")


def _node_term_errors(path: str, term: Object, *, values: bool) -> Iterator[FieldError]:
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        where, operator = f"{path}.matchExpressions[{position}]", expression.get("operator") or ""
        if operator in ("Gt", "Lt"):
            if len(expression.get("values") or ()) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{where}.values", detail)
        else:
            yield from _operator_errors(where, expression)
        yield from key_errors(expression.get("key") or "", f"{where}.key", expression.get("key") or "")
        if values:
            yield from _value_errors(where, expression)
    for position, expression in enumerate(term.get("matchFields") or ()):
        yield from _node_field_errors(f"{path}.matchFields[{position}]", expression)


def _node_field_errors(path: str, expression: Object) -> Iterator[FieldError]:
    key, values = expression.get("key") or "", expression.get("values") or ()
    if expression.get("operator") not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", expression.get("operator") or "", _NO_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if key != "metadata.name":
        yield invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for position, value in enumerate(values):
        yield from subdomain_errors(f"{path}.values[{position}]", value)


def _operator_errors(path: str, expression: Object) -> Iterator[FieldError]:
    operator, values = expression.get("operator") or "", expression.get("values")
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", _OF_SET)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden_field(f"{path}.values", _OF_NONE)
    else:
        yield invalid(f"{path}.operator", operator, _NO_OPERATOR)


def _value_errors(path: str, expression: Object) -> Iterator[FieldError]:
    for position, value in enumerate(expression.get("values") or ()):
        for rule in broken_value_rules(value):
            yield invalid(f"{path}.values[{position}]", value, rule)


def _selector_errors(path: str, selector: Object) -> Iterator[FieldError]:
    yield from label_errors(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{position}]"
        yield from _operator_errors(where, expression)
        yield from key_errors(expression.get("key") or "", f"{where}.key", expression.get("key") or "")
        yield from _value_errors(where, expression)


def _pod_term_errors(path: str, term: Object) -> Iterator[FieldError]:
    for field in ("labelSelector", "namespaceSelector"):
        yield from _selector_errors(f"{path}.{field}", term.get(field) or {})
    for namespace in term.get("namespaces") or ():
        yield from dns_label_errors(f"{path}.namespace", namespace)
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        yield from _label_key_errors(f"{path}.{field}", term.get(field) or (), term.get("labelSelector"))
    for position, key in enumerate(term.get("matchLabelKeys") or ()):
        if key in (term.get("mismatchLabelKeys") or ()):
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid(f"{path}.matchLabelKeys[{position}]", key, detail)
    topology_key = term.get("topologyKey") or ""
    if not topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from key_errors(topology_key, f"{path}.topologyKey", topology_key)


def _label_key_errors(path: str, keys: Sequence[str], selector: Object | None) -> Iterator[FieldError]:
    if keys and selector is None:
        yield forbidden_field(path, _WITHOUT_SELECTOR)
        return
    for position, key in enumerate(keys):
        yield from key_errors(key, f"{path}[{position}]", key)


def spread_errors(path: str, constraints: Sequence[Object]) -> Iterator[FieldError]:
    """Validate the topologySpreadConstraints of a pod."""
    kinds = [(each.get("topologyKey") or "", each.get("whenUnsatisfiable") or "") for each in constraints]
    for position, constraint in enumerate(constraints):
        where, (topology_key, unsatisfiable) = f"{path}[{position}]", kinds[position]
        if constraint.get("maxSkew", 0) <= 0:
            yield invalid(f"{where}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
        if not topology_key:
            yield required(f"{where}.topologyKey", "can not be empty")
        if unsatisfiable not in _UNSATISFIABLE:
            yield unsupported(f"{where}.whenUnsatisfiable", unsatisfiable, _UNSATISFIABLE)
        if kinds[position] in kinds[position + 1 :]:
            shown = f"{{{topology_key}, {unsatisfiable}}}"
            pair = f"{where}.{{topologyKey, whenUnsatisfiable}}"
            yield FieldError(pair, "FieldValueDuplicate", f'Duplicate value: "{shown}"')
        if (domains := constraint.get("minDomains")) is not None:
            if domains <= 0:
                yield invalid(f"{where}.minDomains", domains, "must be greater than zero")
            if unsatisfiable != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}"
                yield invalid(f"{where}.minDomains", domains, detail)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from choice_errors(where, constraint, field, _INCLUSION)
        keys, selector = constraint.get("matchLabelKeys") or (), constraint.get("labelSelector")
        yield from _label_key_errors(f"{where}.matchLabelKeys", keys, selector)
        yield from _selector_errors(f"{where}.labelSelector", selector or {})
