"""The PostgreSQL server of the tests: what it refuses, whom it serves, and when it ends."""

import subprocess
import sys
from pathlib import Path

import psycopg2
import pytest
from guarded_program import GuardedProgram
from psycopg2.errors import InvalidTextRepresentation, UntranslatableCharacter
from waiting import eventually

SUPPORT = Path(__file__).resolve().parents[1] / "support"
HOLD = f"""
import sys, time
sys.path.insert(0, {str(SUPPORT)!r})
from postgres import postgres_server
with postgres_server() as server:
    print(server.create().url, flush=True)
    time.sleep(900)
"""


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('{"loss": NaN}', InvalidTextRepresentation),
        ('{"loss": Infinity}', InvalidTextRepresentation),
        (r'"\u0000"', UntranslatableCharacter),
        (r'"\ud800"', InvalidTextRepresentation),
    ],
)
def test_it_refuses_what_sqlite_takes(postgres, text, refusal):
    with pytest.raises(refusal):
        postgres.create().rows("select %s::jsonb", [text])


def test_a_new_airflow_has_a_database_that_no_other_writes_to(postgres):
    one, other = postgres.airflow(), postgres.airflow()
    insert = "insert into slot_pool (pool, slots, include_deferred) values ('gpus', 2, true) returning pool"
    assert one.rows(insert) == [("gpus",)]
    assert other.rows("select count(*) from slot_pool where pool = 'gpus'") == [(0,)]


@pytest.mark.exhaustive
def test_it_ends_and_leaves_nothing_when_the_test_run_is_killed():
    with GuardedProgram([sys.executable, "-c", HOLD], stdout=subprocess.PIPE) as holder:
        url = holder.stdout.readline().strip()
        folder = Path(url.partition("?host=")[2])
        psycopg2.connect(host=str(folder), user="airflow", dbname="postgres").close()
        pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        holder.kill()
    eventually(lambda: not folder.exists() and not Path(f"/proc/{pid}").exists())
