"""Importing this gives Airflow a home of its own for the whole test run, before Airflow is imported."""

import atexit
import os
import shutil
import tempfile

from left_overs import folder_prefix

if "MXJOB_TEST_AIRFLOW_HOME" not in os.environ:
    HOME = tempfile.mkdtemp(prefix=folder_prefix())
    atexit.register(shutil.rmtree, HOME, ignore_errors=True)
    os.environ["MXJOB_TEST_AIRFLOW_HOME"] = os.environ["AIRFLOW_HOME"] = HOME
    os.environ["AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT"] = "240"  # a busy machine is no failure
    # As where it is not defined at all, but without a database to look it up in.
    os.environ["AIRFLOW_CONN_KUBERNETES_DEFAULT"] = '{"conn_type": "kubernetes"}'
