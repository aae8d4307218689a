"""References to jobs of every kind."""

import pytest

from mxnet_operator.api.kinds import ALL, Kind
from mxnet_operator.client.job_client import JobRef


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: f"{kind.plural}.{kind.group}")
def test_a_reference_leads_to_the_resource_of_its_kind(kind: Kind) -> None:
    metadata = {"name": "digits", "namespace": "team", "uid": "u"}
    ref = JobRef.of({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata})
    assert ref.path == f"/apis/{kind.api_version}/namespaces/team/{kind.plural}/digits"
