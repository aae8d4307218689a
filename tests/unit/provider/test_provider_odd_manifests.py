"""Manifests with mistakes at any path: the operator names them, or sends the job; it raises nothing else."""

import itertools
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from descriptions import MEANT
from manifest_mutations import VALUES, fresh_mutants, seeds

from mxnet_provider.exceptions import MXNetManifestError
from mxnet_provider.job import task_labels
from mxnet_provider.operators.mxnet_job import MXNetJobOperator

COUNT = 800
CONTEXT: Any = {
    "ti": SimpleNamespace(
        dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=1, max_tries=1, id="0192-2", start_date=None
    )
}
FIELDS = ("metadata", "labels", "annotations", "name", "namespace", "generateName", "finalizers", "ownerReferences")


def made_of(manifest: Any, **options: Any) -> dict[str, Any]:
    operator = MXNetJobOperator(
        task_id="t",
        manifest=manifest,
        namespace="default",
        execution_timeout=timedelta(hours=1),
        termination_grace_period=5,
        **options,
    )
    return operator.manifest_to_create(CONTEXT, task_labels.new_token())


def test_any_mistake_below_spec_is_named_or_sent_by_fresh_seeds() -> None:
    outcomes = set()
    overs: Any = itertools.cycle(({}, *(fields for fields, _ in MEANT.values())))
    for (mutant, where), over in zip(fresh_mutants(COUNT, seeds()), overs, strict=False):
        try:
            made = made_of(mutant, **over)
        except MXNetManifestError:
            outcomes.add("named")
        except Exception as e:
            raise AssertionError(f"{where}, over it {over}") from e
        else:
            assert made["metadata"]["name"]
            outcomes.add("sent")
    assert outcomes == {"named", "sent"}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("where", ["the job", "a template"])
def test_any_metadata_are_named_or_sent(field: str, where: str) -> None:
    for value in VALUES:
        _is_named_or_sent(field, value, where)


def _is_named_or_sent(field: str, value: Any, where: str) -> None:
    manifest = seeds()[1]
    holder = manifest if where == "the job" else manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]
    if field == "metadata":
        holder["metadata"] = value
    else:
        holder.setdefault("metadata", {})[field] = value
    try:
        made = made_of(manifest)
    except MXNetManifestError as error:
        assert "metadata" in str(error), value
    else:
        assert made["metadata"]["labels"]["dag_id"] == "d", value
