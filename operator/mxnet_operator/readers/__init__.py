"""Readers of what the API server and a job's pods say: pure, for the controller, the CLI, Airflow and Argo."""
