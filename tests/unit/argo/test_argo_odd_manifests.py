"""Manifests with mistakes at any path: a step and a runner name them when they are made, and raise nothing else."""

from typing import Any

import pytest
from hera.workflows import Parameter
from manifest_mutations import VALUES, fresh_mutants, seeds

from mxnet_argo import MXJobRunner, MXJobSpec, MXJobStep, data

COUNT = 150
MAKERS = pytest.mark.parametrize(
    "make", [MXJobStep, lambda **given: MXJobRunner(image="i", **given)], ids=["step", "runner"]
)
OBJECTS = ["metadata", "metadata.labels", "metadata.annotations", "spec", "spec.runPolicy", "spec.mxReplicaSpecs"]


def without_metadata(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key != "metadata"}


@MAKERS
def test_any_mistake_is_named_by_fresh_seeds(make: Any) -> None:
    outcomes = set()
    for mutant, where in fresh_mutants(COUNT, [without_metadata(each) for each in seeds()]):
        try:
            make(name="s", manifest=mutant)
        except ValueError as error:
            outcomes.add("named")
            assert str(error), where
        except Exception as error:
            raise AssertionError(where) from error
        else:
            outcomes.add("made")
    assert outcomes == {"named", "made"}


@MAKERS
@pytest.mark.parametrize("path", OBJECTS)
def test_a_part_that_is_no_mapping_is_named(make: Any, path: str) -> None:
    for value in (*VALUES, data("p")):
        _is_named_or_a_mapping(make, path, value)


def _is_named_or_a_mapping(make: Any, path: str, value: Any) -> None:
    manifest = {**without_metadata(seeds()[0]), "metadata": {}}
    *above, last = path.split(".")
    holder = manifest
    for field in above:
        holder = holder[field]
    holder[last] = value
    try:
        make(name="s", manifest=manifest, inputs=[Parameter(name="p", default="{}")])
    except ValueError as error:
        assert path.partition(".")[0] in str(error)
    else:
        assert value is None or isinstance(value, dict)


@MAKERS
def test_a_description_over_one_that_is_odd_is_told_too(make: Any) -> None:
    manifest = {**without_metadata(seeds()[1])}
    manifest["spec"]["mxReplicaSpecs"]["Server"] = "x"
    with pytest.raises(ValueError, match=r"mxReplicaSpecs\.Server"):
        make(name="s", manifest=manifest, spec=MXJobSpec(servers=2))
