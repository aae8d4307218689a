"""What a replica type is for is its row; code that names one has a document's reason to."""

import re
from pathlib import Path

from builders import NOW, make_mxjob, make_pod, observe

from mxnet_operator.api import names
from mxnet_operator.api.replica_types import TYPES, ReplicaType
from mxnet_operator.plan import plan

PACKAGE = Path(__file__).parents[3] / "operator/mxnet_operator"
NAMED = re.compile(r"\bnames\.(SCHEDULER|SERVER|WORKER|TUNER|TUNER_TRACKER|TUNER_SERVER)\b")
WITH_REASON = {
    "api/rules.py": "a Server needs a Scheduler: ps-lite",
    "builders/environment.py": "DMLC_PS_ROOT_*, DMLC_NUM_SERVER, DMLC_NUM_WORKER and DMLC_WORKER_ID are ps-lite's",
    "description/manifest.py": "a description speaks of Workers unless it says otherwise, and dist_* needs a Scheduler",
    "description/pods.py": "schedulers, servers and workers are words of a description",
    "integrations/worker_logs/__init__.py": "the fail-fast hook watches Workers: the others wait by design",
    "plan/fewer_workers.py": "ps-lite trains with any number of workers, and with all that it was told of",
    "plan/notices.py": "several Workers share a model by the kvstore of a Server",
    "plan/success.py": "successPolicy Scheduler and AllWorkers name them, and what ps-lite and TVM never end",
}


def test_only_code_with_a_reason_names_a_type() -> None:
    found = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if NAMED.search(file.read_text())}
    assert found == set(WITH_REASON)


def test_every_type_is_spelled_as_its_row_and_found_in_any_case() -> None:
    assert tuple(TYPES) == names.REPLICA_TYPES
    assert all(names.canonical_type(name.upper()) == row.name == name for name, row in TYPES.items())


def test_a_job_of_each_group_of_types_has_one_root_something_that_works_and_something_that_decides() -> None:
    for tunes in (False, True):
        rows = [row for row in TYPES.values() if row.tunes == tunes]
        assert [sum(holds) for holds in zip(*((r.is_root, r.works, r.reports_result) for r in rows), strict=True)] == [
            1,
            1,
            1,
        ]
        assert any(row.decides for row in rows)


def test_a_type_that_is_added_as_a_row_is_deleted_and_decides_as_the_row_says(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """An evaluator beside the workers: no code knows it by name."""
    row = ReplicaType(name="Evaluator", decides=True, serves=True)
    monkeypatch.setitem(TYPES, "Evaluator", row)
    monkeypatch.setitem(names._BY_LOWER_CASE, "evaluator", "Evaluator")
    monkeypatch.setattr(names, "REPLICA_TYPES", tuple(TYPES))
    job = make_mxjob().worker(1).obj()
    specs = {**job.spec.mx_replica_specs, "Evaluator": job.spec.mx_replica_specs["Worker"]}
    job.spec.mx_replica_specs.clear()
    job.spec.mx_replica_specs.update(specs)
    done = make_pod(job, "Worker").succeeded()
    waiting = plan(job, observe(job, done, make_pod(job, "Evaluator").running()), NOW)
    assert waiting.status is None or waiting.status.state != "Succeeded"
    over = plan(job, observe(job, done, make_pod(job, "Evaluator").succeeded()), NOW)
    assert over.status is not None
    assert over.status.state == "Succeeded"
