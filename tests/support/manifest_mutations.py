"""Mistakes in manifests of jobs, drawn at random: types swapped, nulls, huge numbers, odd texts, at any path.

After Acto (Gu et al., SOSP 2023), which finds bugs of operators by changing properties of a custom resource.
"""

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from descriptions import COMMON, MEANT
from fresh_seeds import drawn, first_fresh_seed
from seed_manifests import SEEDS, manifest

from mxnet_operator.description import MXJobDescription, to_manifest

Object = dict[str, Any]
Path = tuple[str | int, ...]

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    3.5,
    10**12,
    2**31,
    2**63 - 1,
    1e300,
    "",
    "x",
    "5",
    "two",
    "A=b",
    "no label!",
    "gr\u00fc\u00dfe\u2028\u0000\U0001f600",
    "a" * 300,
    "../..",
    [],
    [None],
    ["a"],
    [5],
    [{}],
    [{"name": 1}],
    {},
    {"FOO": "bar"},
    {"name": "mxjob-port"},
    {"a": None},
    {"": {}},
)


def seeds() -> list[Object]:
    """Manifests to begin from: each of the table of descriptions, and those of the five documents."""
    made = [to_manifest(MXJobDescription(name="job", **{**COMMON, **fields})) for fields, _ in MEANT.values()]
    made += [manifest(path.read_text()) for path in sorted(SEEDS.glob("00*/*.y*ml"))]
    parted: list[Object] = json.loads(json.dumps(made))  # parts that they share would be changed together
    return parted


def mutate(rng: random.Random, manifest: Object) -> tuple[Object, str]:
    """A copy with one or two mistakes below spec, and where they are."""
    mutant = copy.deepcopy(manifest)
    said = [_mutate_once(rng, mutant) for _ in range(1 if rng.random() < 0.8 else 2)]
    return mutant, "; ".join(said)


def fresh_mutants(count: int, manifests: Sequence[Object]) -> Iterator[tuple[Object, str]]:
    """These manifests, and mutants as `mutate` makes them: others in each run, fewer where not all is run."""
    yield from ((copy.deepcopy(each), "as it is") for each in manifests)
    rng = random.Random(first_fresh_seed())
    for _ in range(drawn(count, count // 3)):
        yield mutate(rng, rng.choice(manifests))


def _mutate_once(rng: random.Random, mutant: Object) -> str:
    paths = [("spec", *path) for path in _paths(mutant["spec"])]
    path = rng.choice(paths)
    *way, last = path
    parent: Any = mutant
    for step in way:
        parent = parent[step]
    where = ".".join(map(str, path))
    match rng.choice(("swap", "swap", "swap", "wrap", "delete", "add", "twice", "rename")):
        case "wrap":
            parent[last] = rng.choice(([parent[last]], {"a": parent[last]}))
            return f"{where} = {parent[last]!r:.60}"
        case "delete":
            del parent[last]
            return f"del {where}"
        case "add" if isinstance(parent[last], dict):
            name, value = rng.choice(("bogus", "Name", "nam", "envs")), rng.choice(VALUES)
            parent[last][name] = value
            return f"{where}.{name} = {value!r:.60}"
        case "twice" if isinstance(parent[last], list) and parent[last]:
            parent[last].append(copy.deepcopy(parent[last][-1]))
            return f"{where} twice"
        case "rename" if isinstance(last, str):
            parent[rng.choice((last.upper(), last[:-1], f"{last}s"))] = parent.pop(last)
            return f"rename {where}"
    parent[last] = copy.deepcopy(rng.choice(VALUES))
    return f"{where} = {parent[last]!r:.60}"


def _paths(value: Any) -> list[Path]:
    """Every path below a value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [each for name, child in children for each in ((name,), *((name, *path) for path in _paths(child)))]
