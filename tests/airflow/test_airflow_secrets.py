"""What is in Airflow's database and logs after all that tests have made a whole Airflow write."""

import contextlib

import pytest
from airflow_world import TOKEN

pytestmark = [pytest.mark.whole_airflow, pytest.mark.alone]


@pytest.mark.exhaustive
def test_no_secret_is_in_airflow_s_database_or_logs(world):
    run = world.begin("deferred")
    run.in_progress()
    run.succeed()
    read = {}
    for path in world.airflow.home.rglob("*"):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):  # the database's journal comes and goes
            read[path] = path.read_bytes()
    assert "triggerer.log" in {path.name for path in read}
    assert [path for path, content in read.items() if TOKEN.encode() in content] == []
    database = world.airflow.database
    stored = {
        table: [text for (text,) in database.rows(f'select "{table}"::text from "{table}"')]
        for (table,) in database.rows("select tablename from pg_tables where schemaname = 'public'")
    }
    assert stored["task_instance"]
    assert [table for table, rows in stored.items() if any(TOKEN in row for row in rows)] == []
    logs = "".join(content.decode(errors="replace") for path, content in read.items() if path.suffix == ".log")
    assert "Unclosed client session" not in logs
    assert "Unclosed connector" not in logs
