"""Real Airflow for the tests: a home with a database, and `airflow` run in it as a user runs it."""

import airflow_home  # noqa: F401 - before anything imports Airflow
import pytest
from airflow_command import AirflowHome
from airflow_world import begun, cluster, local, real, whole_airflow, world, world_alone  # noqa: F401 - fixtures
from begun_tests import pytest_pyfunc_call  # noqa: F401 - a hook
from postgres import Postgres


@pytest.fixture(scope="session")
def airflow(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> AirflowHome:
    """Airflow with an empty database."""
    return AirflowHome(tmp_path_factory.mktemp("airflow"), postgres.airflow())
