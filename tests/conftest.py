"""Fixtures that tests in several folders share; each file of tests/support says what it offers."""

import pytest

pytest_plugins = ["images_fixtures", "cluster_fixtures", "control_plane_fixtures", "argo_fixtures"]

SHARED = {"airflow", "argo"}
"""Folders whose tests share a server that is costly to start: all of one go to one of pytest's workers."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What pytest's workers take from each other: a whole file, or a whole folder."""
    for item in items:
        folder = item.path.parent.name
        item.add_marker(pytest.mark.xdist_group(folder if folder in SHARED else str(item.path)))
