"""Real Airflow for the tests: a home with a database, and `airflow` run in it as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import airflow_home  # noqa: F401 - before anything imports Airflow
import pytest
from airflow_scenes import live, live_airflow, live_alone, local, real, site, together  # noqa: F401 - fixtures
from airflow_together import pytest_pyfunc_call  # noqa: F401 - a hook
from postgres import Database, Postgres

# What a shell starts in the background ignores Ctrl-C, and so does all that it starts: here it is as at a terminal.
AIRFLOW = ["env", "--default-signal=INT", sys.executable, "-m", "airflow"]


class AirflowHome:
    """A folder with Airflow's database, and the environment in which `airflow` uses it."""

    def __init__(self, home: Path, database: Database) -> None:
        self.home = home
        self.database = database
        own = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        self.environment = {
            **own,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database.url,
            "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "240",  # a busy machine is no failure
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "AIRFLOW__LOGGING__NAMESPACE_LEVELS": "airflow.task=INFO mxnet_provider=INFO",
            "AIRFLOW__LOGGING__LOG_FORMAT": "%(message)s",
        }

    def start(self, *args: str, **environment: str) -> "subprocess.Popen[str]":
        """Start `airflow`, its output and errors in one pipe."""
        return subprocess.Popen(
            [*AIRFLOW, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.home,
            env={**self.environment, **environment},
        )

    def run(self, *args: str, **environment: str) -> tuple[int, str]:
        """Run `airflow` to its end: its exit code and what it printed."""
        process = self.start(*args, **environment)
        try:
            output, _ = process.communicate(timeout=900)
        finally:
            process.kill()
        return process.returncode, output


@pytest.fixture(scope="session")
def airflow(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> AirflowHome:
    """Airflow with an empty database."""
    return AirflowHome(tmp_path_factory.mktemp("airflow"), postgres.airflow())
