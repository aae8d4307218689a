"""Readers of what the API server says of a job's pods: pure, for the controller, the CLI, Airflow and Argo."""
