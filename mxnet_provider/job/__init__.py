"""A task's job: what it is made of, who holds it, how it ended. Imports no Airflow."""
