"""In-memory Kubernetes API server: the subset that kubectl, controllers and Airflow need."""
