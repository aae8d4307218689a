"""Fixtures that tests in several folders share; each file of tests/support says what it offers."""

pytest_plugins = [
    "waiting",
    "guards",
    "left_overs",
    "tiers",
    "workers",
    "postgres",
    "images_fixtures",
    "forked_mxjob",
    "cluster_fixtures",
    "control_plane_fixtures",
    "fresh_seeds",
]
