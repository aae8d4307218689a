"""The provider imports Airflow, which makes itself a home when it is imported."""

import airflow_home  # noqa: F401
