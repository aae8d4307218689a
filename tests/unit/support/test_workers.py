"""Files are dealt to pytest's workers by how long they took last, longest first."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from workers import (
    AIRFLOW_COMMANDS,
    APART,
    OTHER_AIRFLOWS,
    SECONDS_OF_FILES,
    WITH_CONTROL_PLANES,
    Seconds,
    longest,
    phase_of,
    preferred,
    pytest_collection_modifyitems,
    scope_of,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("seconds", "first"),
    [
        ({}, "b.py"),
        ({"a.py": 30.0}, "a.py"),
        ({"a.py": 30.0, "c.py": 31.0}, "c.py"),
        ({"gone.py": 900.0, "a.py": 0.1}, "b.py"),
    ],
)
def test_the_file_that_took_longest_comes_first(seconds: dict[str, float], first: str) -> None:
    scopes = {"a.py": ["1"], "b.py": ["1", "2", "3"], "c.py": ["1", "2"]}
    assert longest(scopes, seconds) == first


@pytest.mark.parametrize(
    ("has_one", "others", "best"),
    [
        (False, 0, {"cluster", "unit"}),
        (False, WITH_CONTROL_PLANES, {"unit"}),
        (True, WITH_CONTROL_PLANES, {"cluster"}),
    ],
)
def test_few_workers_start_a_control_plane(has_one: bool, others: int, best: set[str]) -> None:
    files = {each: f"tests/{each}/test_a.py" for each in ("cluster", "unit")}
    scopes = {path: ["1"] for path in files.values()}
    found = preferred(scopes, has_control_plane=has_one, control_planes=others)
    assert {*found} == {files[each] for each in best}


@pytest.mark.parametrize(("has_one", "folder"), [(True, "unit"), (False, "cluster")])
def test_no_worker_is_idle_for_want_of_files_of_its_sort(has_one: bool, folder: str) -> None:
    left = {f"tests/{folder}/test_a.py": ["1"]}
    assert preferred(left, has_control_plane=has_one, control_planes=WITH_CONTROL_PLANES) == left


@pytest.mark.parametrize(
    ("test", "phase"),
    [
        ("tests/unit/plan/test_plan.py::test_x", 0),
        ("tests/conformance/test_conformance_writes.py::test_x[local]", 0),
        ("tests/local/test_tuning.py::test_x", 1),
        ("tests/airflow/test_airflow_whole.py::test_x[real]", 1),
        ("tests/conformance/test_conformance_writes.py::test_x[kubernetes-a]", 2),
        ("tests/unit/argo/test_argo_lint.py::test_x", 2),
        ("tests/cluster/test_cluster_controller.py::test_x", 2),
    ],
)
def test_tests_that_need_programs_come_last(test: str, phase: int) -> None:
    assert phase_of(scope_of(test)) == phase


def test_a_shared_folder_is_one_scope() -> None:
    assert scope_of("tests/airflow/test_a.py::test_x[y]") == "tests/airflow"
    assert scope_of("tests/unit/api/test_crd.py::test_x[a/b::c]") == "tests/unit/api/test_crd.py"


def test_what_shares_nothing_with_its_folder_is_a_scope_beside_it() -> None:
    assert all((ROOT / path).is_file() for path in APART)
    assert scope_of("tests/airflow/test_airflow_executors.py::test_x[3.1-deferred]") == OTHER_AIRFLOWS
    assert scope_of("tests/airflow/test_airflow_sweep.py::test_x") == AIRFLOW_COMMANDS
    assert scope_of("tests/airflow/test_airflow_trigger.py::test_x") == "tests/airflow/test_airflow_trigger.py"


def test_what_a_run_took_is_there_for_the_next_beside_what_did_not_run() -> None:
    kept = {SECONDS_OF_FILES: {"old.py": 7.0, "a.py": 1.0}}
    config = SimpleNamespace(cache=SimpleNamespace(get=kept.get, set=kept.__setitem__))
    seconds = Seconds(config)  # type: ignore[arg-type]
    for nodeid, duration in (("a.py::x", 2.0), ("a.py::y[1]", 0.5), ("b.py::x", 3.0)):
        seconds.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, duration=duration))  # type: ignore[arg-type]
    seconds.pytest_sessionfinish()
    assert json.loads(json.dumps(kept[SECONDS_OF_FILES])) == {"old.py": 7.0, "a.py": 2.5, "b.py": 3.0}


def test_an_id_that_is_another_in_each_worker_is_rejected_at_once() -> None:
    good, bad = (SimpleNamespace(nodeid=f"a.py::x[{each}]") for each in ("0x10", object()))
    pytest_collection_modifyitems([good])  # type: ignore[list-item]
    with pytest.raises(pytest.UsageError, match="give the parameters ids"):
        pytest_collection_modifyitems([good, bad])  # type: ignore[list-item]
