"""Commands of `airflow mxnet`."""
