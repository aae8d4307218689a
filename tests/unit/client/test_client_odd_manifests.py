"""Manifests with mistakes at any path: the client names them, and raises nothing else."""

import itertools
from typing import Any

import pytest
from descriptions import MEANT
from manifest_mutations import fresh_mutants, seeds

from mxnet_operator.client import AsyncMXJobClient, InvalidJobError
from mxnet_operator.description import MXJobDescription

COUNT = 800


def outcome(described: MXJobDescription | None, manifest: dict[str, Any], where: str) -> str:
    try:
        AsyncMXJobClient().manifest(described, manifest)
    except InvalidJobError as error:
        assert error.problems, where
        return "named"
    except Exception as error:
        raise AssertionError(f"{where}, under {described}") from error
    return "made"


def test_any_mistake_is_named_by_fresh_seeds() -> None:
    assert {outcome(None, mutant, where) for mutant, where in fresh_mutants(COUNT, seeds())} == {"named", "made"}


def test_any_mistake_is_named_under_any_description_by_fresh_seeds() -> None:
    described = itertools.cycle(MXJobDescription(**fields) for fields, _ in MEANT.values())
    mutants = fresh_mutants(COUNT, seeds())
    outcomes = {outcome(each, mutant, where) for each, (mutant, where) in zip(described, mutants, strict=False)}
    assert outcomes == {"named", "made"}


@pytest.mark.parametrize("odd", [3.5, -1, None, [5], "nvidia.com/gpu", {}], ids=str)
def test_an_odd_part_of_resources_is_named_beside_gpus(odd: Any) -> None:
    manifest = seeds()[1]
    container = manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    for resources in (odd, {"limits": odd}, {"requests": odd}, {"bogus": odd}):
        container["resources"] = resources
        outcome(MXJobDescription(gpus_per_worker=1), manifest, f"resources: {resources}")
