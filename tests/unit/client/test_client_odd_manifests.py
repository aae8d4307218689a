"""Manifests with mistakes at any path: the client names them, and raises nothing else."""

import pytest
from manifest_mutations import fresh_mutants, seeds

from mxnet_operator.client import AsyncMXJobClient, InvalidJobError
from mxnet_operator.job import MXJobDescription

COUNT = 400


@pytest.mark.parametrize(
    "over", [None, MXJobDescription(workers=3, env={"A": "b"}, gpus_per_worker=1)], ids=["alone", "over it"]
)
def test_any_mistake_is_named_by_fresh_seeds(over):
    client, outcomes = AsyncMXJobClient(), set()
    for mutant, where in fresh_mutants(COUNT, seeds()):
        try:
            client.manifest(over, mutant)
        except InvalidJobError as error:
            assert error.problems, where
            outcomes.add("named")
        except Exception as error:
            raise AssertionError(where) from error
        else:
            outcomes.add("made")
    assert outcomes == {"named", "made"}
