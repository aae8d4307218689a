"""The provider imports Airflow, which makes itself a home when it is imported."""

import importlib.util
from pathlib import Path

import airflow_home  # noqa: F401

if importlib.util.find_spec("airflow.sdk") is None:
    # Airflow 2, as `tox -e lowest-airflow` has it, against which tests/airflow/test_airflow_older_releases.py runs:
    # tests that are about the task SDK of Airflow 3, or drive an operator by its parts, are left out.
    collect_ignore = [
        each.name
        for each in Path(__file__).parent.glob("test_*.py")
        if any(
            line.startswith(("from airflow.sdk", "from provider_fixtures")) for line in each.read_text().splitlines()
        )
    ]
