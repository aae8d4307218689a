"""Runs training-operator 1.8.1's own test of gang scheduling on the cluster of KUBECONFIG, in the SDK's environment.

    python official_gang.py SDK_FOLDER NAMESPACE SCHEDULER

What it prints of a job's logs is left out: nothing runs in the pods here. SCHEDULER is as its authors name it:
scheduler-plugins, volcano, or none for the cluster's default scheduler.
"""

import importlib
import os
import sys
from types import ModuleType, SimpleNamespace

folder, namespace, scheduler = sys.argv[1:]
os.environ["GANG_SCHEDULER_NAME"] = scheduler
pytest = ModuleType("pytest")  # the file marks its tests by it, and needs nothing else of it
pytest.mark = SimpleNamespace(skipif=lambda *_, **__: lambda function: function)
sys.modules["pytest"] = pytest
importlib.import_module("kubeflow.training")  # the one that is installed: the folder has its source, too
sys.path.insert(0, folder)
importlib.import_module("test.e2e.utils").print_job_results = lambda *_: None
importlib.import_module("test.e2e.test_e2e_mxjob").test_sdk_e2e_with_gang_scheduling(namespace)
