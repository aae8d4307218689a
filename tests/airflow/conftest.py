"""Real Airflow for the tests: a home with a database, and `airflow` run in it as a user runs it."""

from collections.abc import Callable, Iterator

import airflow_home  # noqa: F401 - before anything imports Airflow
import pytest
import structlog.testing
from airflow_command import AirflowHome
from airflow_world import begun, cluster, local, real, whole_airflow, world  # noqa: F401 - fixtures
from begun_tests import is_alone, pytest_pyfunc_call  # noqa: F401 - a hook
from postgres import Postgres
from workers import scope_of


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests that are alone last: they wait for those that are begun together, within their own time limit.

    What fails on a whole Airflow is tried once more: docs/decisions/tests.md.
    """
    if not config.option.usepdb:
        for item in items:
            if item.get_closest_marker("whole_airflow"):
                item.add_marker(pytest.mark.flaky(reruns=1))
    places = [place for place, item in enumerate(items) if scope_of(item.nodeid) == "tests/airflow"]
    ordered = sorted((items[place] for place in places), key=is_alone)
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="session")
def airflow(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> AirflowHome:
    """Airflow with an empty database."""
    return AirflowHome(tmp_path_factory.mktemp("airflow"), postgres.airflow())


@pytest.fixture(autouse=True)
def no_controller_is_waited_for() -> Iterator[None]:
    """An operator in this process asks once where its job's page is: where the test plays the controller, nobody says.

    How long it waits otherwise is tested by tests/unit/provider/test_provider_task_job.py.
    """
    with pytest.MonkeyPatch.context() as patch:  # the fixture `monkeypatch` would outlive all others of a test
        patch.setattr("mxnet_provider.operators.task_job._PAGE_SECONDS", 0.0)
        yield


@pytest.fixture
def task_log() -> Iterator[Callable[[], list[str]]]:
    """The messages of the task's log so far."""
    with structlog.testing.capture_logs() as entries:
        yield lambda: [entry["event"] for entry in entries]
