"""Fixtures that tests in several folders share; each file of tests/support says what it offers."""

pytest_plugins = ["images_fixtures", "cluster_fixtures", "control_plane_fixtures", "argo_fixtures"]
