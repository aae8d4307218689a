"""Apache Airflow provider for MXJobs. Imports no Airflow: Airflow itself imports this while it starts."""
