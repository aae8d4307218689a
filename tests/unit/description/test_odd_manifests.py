"""Manifests with mistakes at any path, through every door: each names what is wrong, and raises nothing else."""

import copy
import io
import itertools
import json
import random
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import airflow_home  # noqa: F401 - before anything imports Airflow
import pytest
from descriptions import MEANT
from fresh_seeds import drawn, first_fresh_seed
from manifest_mutations import VALUES, fresh_mutants, seeds

from mxnet_argo import MXJobRunner, MXJobStep
from mxnet_operator.cli.mxjob import main
from mxnet_operator.client import AsyncMXJobClient
from mxnet_operator.description import MXJobDescription

COUNT = 100
FIELDS = ("", "labels", "annotations", "name", "ownerReferences")
Door = Callable[[dict[str, Any]], object]


def operator(manifest: dict[str, Any], **fields: Any) -> object:
    from mxnet_provider.exceptions import MXNetManifestError
    from mxnet_provider.job import task_labels
    from mxnet_provider.operators.mxnet_job import MXNetJobOperator

    task = SimpleNamespace(
        dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=1, max_tries=1, id="0192-2", start_date=None
    )
    context: Any = {"ti": task}
    try:
        made = MXNetJobOperator(
            task_id="t",
            manifest=manifest,
            namespace="default",
            execution_timeout=timedelta(hours=1),
            termination_grace_period=5,
            **fields,
        )
        return made.manifest_to_create(context, task_labels.new_token())
    except MXNetManifestError as error:
        raise ValueError(str(error)) from error


def without_metadata(manifest: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key != "metadata"}


@pytest.fixture
def mxjob(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    def run(manifest: dict[str, Any]) -> None:
        monkeypatch.setattr(sys, "argv", ["mxjob", "run", "--dry-run", "-f", "-"])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(manifest).encode())))
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        assert left.value.code in {0, 2}, out + err
        assert "Traceback" not in out + err
        if left.value.code == 2:
            raise ValueError(err)

    return run


def with_odd_metadata() -> Iterator[tuple[dict[str, Any], str]]:
    """In turns the job's and a template's."""
    for number, (value, field) in enumerate(itertools.product(VALUES, FIELDS)):
        manifest = seeds()[0]
        holder = manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"] if number % 2 else manifest
        holder["metadata"] = {"name": "job", field: value} if field else value
        yield manifest, f"metadata.{field} = {value!r:.60}"


def test_every_door_names_any_mistake_by_fresh_seeds(mxjob: Door) -> None:
    over = itertools.cycle(fields for fields, _ in MEANT.values())
    doors: dict[str, Door] = {
        "mxjob": mxjob,
        "client": lambda given: AsyncMXJobClient().manifest(MXJobDescription(**next(over)), given),
        "step": lambda given: MXJobStep(name="s", manifest=without_metadata(given)),
        "runner": lambda given: MXJobRunner(name="s", image="i", manifest=without_metadata(given)),
        "operator": lambda given: operator(given, **next(over)),
    }
    outcomes = set()
    odd = list(with_odd_metadata())
    fresh = random.Random(first_fresh_seed())
    mutants = itertools.chain(fresh_mutants(COUNT, seeds()), fresh.sample(odd, drawn(len(odd), 40)))
    for (mutant, where), (door, make) in itertools.product(mutants, doors.items()):
        try:
            make(copy.deepcopy(mutant))
        except ValueError as error:
            assert str(error), (door, where)
            outcomes.add((door, "named"))
        except Exception as error:
            raise AssertionError(f"{door}: {where}") from error
        else:
            outcomes.add((door, "made"))
    assert outcomes == set(itertools.product(doors, ("named", "made")))
