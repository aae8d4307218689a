"""Values of the shipped templates' jobs that are made of more than one input, or of an input of one JSON type."""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mxnet_argo.values import INTEGER, LIST, MAPPING, Rule, Value, reference, value_of

listed = partial(value_of, kind=LIST)
mapped = partial(value_of, kind=MAPPING)


def servers_or_default(servers: str, workers: str) -> Value:
    """Return an input parameter that is a number of servers; where it is empty, what a description takes by default."""
    given, count = reference(servers), reference(workers)

    def text_of(samples: Mapping[str, str]) -> str | None:
        return samples.get(servers) or ("0" if samples.get(workers) == "1" else samples.get(workers))

    said = f'({given} != "" ? {given} : {count} == "1" ? "0" : {count})'
    return Value(said, INTEGER, text_of, named=f'({given} != "" ? "{servers}" : "{workers}")')


def env_with(env: str, name: str, parameter: str) -> Value:
    """Return an input parameter that is a JSON list of variables, with one more, whose value is another input's."""
    given, value = reference(env), reference(parameter)
    more = f"concat(sprig.fromJson({given}), [sprig.dict('name', '{name}', 'value', {value})])"

    def text_of(samples: Mapping[str, str]) -> str:
        listed = LIST.parse(samples.get(env, "[]"))
        return json.dumps([*listed, {"name": name, "value": samples.get(parameter, "x")}])

    said = f"(type(sprig.fromJson({given})) == 'array' ? toJson({more}) : {given})"
    return Value(said, LIST, text_of, named=f'"{env}"')


def mounts_of(mounts: str, volumes: str) -> Value:
    """Return an input parameter that is a JSON list of volumeMounts, each of one of the volumes in another input."""
    given = f"sprig.fromJson({reference(volumes)})"
    names = f"map(filter({given}, type(#) == 'map'), #.name)"
    found = f"all(sprig.fromJson(given), type(#) != 'map' || #.name in {names})"
    rule = Rule(f"(type({given}) != 'array' || {found})", f"has a name that is none of {volumes}")

    def text_of(samples: Mapping[str, str]) -> str | None:
        unknown: list[Any] = []
        with contextlib.suppress(ValueError, KeyError):  # what is no list is named at its own place
            of_mounts, of_volumes = (
                [each.get("name") for each in json.loads(samples[one]) if isinstance(each, dict)]
                for one in (mounts, volumes)
            )
            unknown = [name for name in of_mounts if name not in of_volumes]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is none of {volumes}")
        return samples.get(mounts)

    return replace(value_of(mounts, LIST), text_of=text_of, rules=(rule,))


def resources_with_gpus(resources: str, gpus: str, resource: str) -> Value:
    """Return an input parameter that is JSON, a container's resources, with another one's limit of GPUs."""
    given, count = reference(resources), reference(gpus)
    limit = f'sprig.dict("limits", sprig.dict("{resource}", {count}))'
    merged = f"toJson(sprig.merge(sprig.fromJson({given}), {limit}))"
    counted = f"{count} matches '^[0-9]{{1,9}}$'"

    def text_of(samples: Mapping[str, str]) -> str:
        text, number = samples.get(resources, "{}"), samples.get(gpus, "0")
        if not re.fullmatch("[0-9]{1,9}", number):
            raise ValueError(f"{gpus}: {number!r} is not a whole number")
        asked = MAPPING.parse(text)
        if number == "0":
            return text
        for each in ("limits", "requests"):
            amounts = asked.get(each)
            amount = amounts.get(resource) if isinstance(amounts, dict) else None
            if amount is not None and str(amount) != number:
                detail = f"is {number}, but {resources}.{each}[{resource}] is {amount!r}: give one of them"
                raise ValueError(f"{gpus}: {detail}")
        limits = asked.get("limits") or {}
        return json.dumps({**asked, "limits": {resource: number, **limits}} if isinstance(limits, dict) else asked)

    readable = f"type(sprig.fromJson({given})) == 'map'"
    said = f'({counted} ? {count} != "0" && {readable} ? {merged} : {given} : {count})'
    named = f'({counted} ? "{resources}" : "{gpus}")'
    return Value(said, replace(MAPPING, rules=(Rule(counted, "is no whole number"), *MAPPING.rules)), text_of, named)
