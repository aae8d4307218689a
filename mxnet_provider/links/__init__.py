"""Links from a task in Airflow's web page to its MXJob."""
