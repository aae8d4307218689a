"""The command `airflow` as a user runs it, in a home and a database of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from postgres import Database
from waiting import MINUTES

# What a shell starts in the background ignores Ctrl-C, and so does all that it starts: here it is as at a terminal.
AIRFLOW = ["env", "--default-signal=INT", sys.executable, "-m", "airflow"]


class AirflowHome:
    """A folder with Airflow's database, and the environment in which `airflow` uses it.

    `within` makes of a command one that runs elsewhere: in the namespaces of a node.
    """

    def __init__(self, home: Path, database: Database, within: Callable[..., list[str]] | None = None) -> None:
        self.home = home
        self.database = database
        self._command = within(*AIRFLOW) if within else AIRFLOW
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
            [*self._command, *args],
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
            output, _ = process.communicate(timeout=3 * MINUTES)  # a DAG may train more than once
        finally:
            process.kill()
        return process.returncode, output

    def returned(self, dag_id: str, task_id: str) -> Any:
        """What the task of the DAG's only run has returned, as its XCom has it."""
        query = "select value from xcom where dag_id = %s and task_id = %s and key = 'return_value'"
        [(value,)] = self.database.rows(query, [dag_id, task_id])
        return value
