"""Fixtures that tests in several folders share; each file of tests/support says what it offers."""

from typing import Any

import pytest

pytest_plugins = [
    "pytester",
    "shared_folders",
    "postgres",
    "images_fixtures",
    "cluster_fixtures",
    "control_plane_fixtures",
    "fresh_seeds",
    "left_patches",
]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal tests out as `workers` says; xdist asks for it where it runs them in several processes."""
    from workers import ByFile

    return ByFile(config, log)
