"""Triggers that Airflow's triggerer runs while a task waits for an MXJob without a worker."""
