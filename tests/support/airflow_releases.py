"""Whole Airflows of older releases, each with the provider of this checkout in an environment of its own."""

import contextlib
import importlib.metadata
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from airflow_executors import CeleryExecutorServer, celery_executor
from airflow_runs import Task
from airflow_server import AirflowServer, airflow_server
from locked_python import locked_python
from postgres import Postgres

OLDER = ("2.11", "3.1")
"""The oldest that the provider supports, and one between that and the newest, which all other tests are run on.

The first has LocalExecutor, the second CeleryExecutor: no code of ours knows both a release and an executor.
"""

_ANYBODY_MAY_DO_ANYTHING = """
AUTH_ROLE_PUBLIC = "Admin"
WTF_CSRF_ENABLED = False
"""


class Airflow2Server(AirflowServer):
    """A running Airflow 2."""

    parts: ClassVar[Mapping[str, Sequence[str]]] = {
        "api-server": ("webserver", "--workers", "2", "--hostname", "127.0.0.1"),
        "scheduler": ("scheduler", "--skip-serve-logs"),
        "triggerer": ("triggerer", "--skip-serve-logs"),
    }
    api: ClassVar[str] = "/api/v1"
    health: ClassVar[str] = "/api/v1/health"
    xcom_query: ClassVar[Mapping[str, str]] = {"stringify": "false"}
    change: ClassVar[Mapping[str, Any]] = {"dry_run": False}
    _new_run: ClassVar[Mapping[str, Any]] = {}

    def know_dags(self) -> None:
        """Read the DAGs once; the scheduler would, too, and later."""
        self.run("dags", "reserialize")

    def clear(self, task: Task) -> None:
        """By the command line: the REST API of 2.11.2 leaves a task that runs as it is."""
        when = task.run.run_id.partition("__")[2]
        chosen = ("--task-regex", f"^{task.task_id}$", "--start-date", when, "--end-date", when)
        self.run("tasks", "clear", "--yes", *chosen, task.run.dag_id)

    def _log_in(self) -> None:
        """Nobody has to."""


@contextlib.contextmanager
def older_airflow(release: str, home: Path, dags: Path, postgres: Postgres) -> Iterator[AirflowServer]:
    """A running Airflow of one of OLDER."""
    python = str(locked_python(f"airflow-{release}"))
    packages = home / "packages"
    _link_provider(packages)
    of: type[AirflowServer] = CeleryExecutorServer
    with contextlib.ExitStack() as held:
        if release.startswith("2."):
            (home / "webserver_config.py").write_text(_ANYBODY_MAY_DO_ANYTHING)
            of = Airflow2Server
            environment = {
                "AIRFLOW__API__AUTH_BACKENDS": "airflow.api.auth.backend.default",
                "AIRFLOW__WEBSERVER__SECRET_KEY": "for tests",
                "AIRFLOW__WEBSERVER__WEB_SERVER_MASTER_TIMEOUT": "600",
            }
        else:
            environment = held.enter_context(celery_executor())
        environment["PYTHONPATH"] = str(packages)
        yield held.enter_context(
            airflow_server(home, dags, postgres.airflow(python), of=of, python=python, **environment)
        )


def _link_provider(folder: Path) -> None:
    """Make a folder for PYTHONPATH of what is installed here of this project, and of nothing else."""
    folder.mkdir()
    found = importlib.metadata.distribution("mxnet-operator")
    tops = {Path(str(each)).parts[0] for each in found.files or ()} - {".."}
    for top in tops:
        (folder / top).symlink_to(os.path.abspath(str(found.locate_file(top))))  # noqa: PTH100
