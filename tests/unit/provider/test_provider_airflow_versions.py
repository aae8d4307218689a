"""What older Airflows lack; that the provider runs on them is shown by tests/airflow/test_airflow_older_releases.py."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mxnet_provider
from mxnet_provider import airflow_versions

PROVIDER = Path(mxnet_provider.__file__).parent
KNOW_THE_RELEASE = {"airflow_versions.py", "hooks/defined_connection.py"}
"""They import what not every release has, where it has it."""


def imported(tree: ast.AST) -> list[str]:
    """The modules that are imported where the code runs, and not only for its types."""
    if isinstance(tree, ast.If) and isinstance(tree.test, ast.Name) and tree.test.id == "TYPE_CHECKING":
        return [name for each in tree.orelse for name in imported(each)]
    if isinstance(tree, ast.ImportFrom):
        return [tree.module or ""]
    if isinstance(tree, ast.Import):
        return [alias.name for alias in tree.names]
    return [name for child in ast.iter_child_nodes(tree) for name in imported(child)]


def test_nothing_is_imported_from_where_older_airflows_do_not_have_it() -> None:
    moved = ("airflow.sdk", "airflow.exceptions")
    found = {
        path.relative_to(PROVIDER).as_posix()
        for path in PROVIDER.rglob("*.py")
        for name in imported(ast.parse(path.read_text(encoding="utf-8")))
        if name in moved or name.startswith(tuple(f"{each}." for each in moved))
    }
    assert found == KNOW_THE_RELEASE


def a_try(**own: Any) -> Any:
    return SimpleNamespace(**{"dag_id": "d", "run_id": "r", "task_id": "t", "map_index": -1, "try_number": 1, **own})


def test_a_try_has_airflow_s_id_or_one_that_no_other_try_of_any_task_has() -> None:
    assert airflow_versions.id_of_try(a_try(id="0192")) == "0192"
    tries = [a_try(), a_try(try_number=2), a_try(map_index=0), a_try(run_id="s"), a_try(task_id="u"), a_try(dag_id="e")]
    assert len({airflow_versions.id_of_try(each) for each in tries}) == len(tries)
    assert airflow_versions.id_of_try(a_try()) == airflow_versions.id_of_try(a_try())
