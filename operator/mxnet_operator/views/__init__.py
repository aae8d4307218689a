"""What the API server says of a job's pods, read in one place: pure, for the controller, the CLI, Airflow and Argo."""
