"""A script that has mx.gpu() in its code runs on a machine without a GPU, if MXJOB_GPU says so."""

import os
import subprocess
import sys

import pytest

from mxnet_operator.builders.fail_fast import HOOK

CONTEXT = """
class Context(object):
    devstr2type = {'cpu': 1, 'gpu': 2, 'cpu_pinned': 3}
"""


@pytest.mark.parametrize(("given", "device"), [({"MXJOB_GPU": "cpu"}, 1), ({}, 2), ({"MXJOB_GPU": "0"}, 2)])
def test_a_gpu_of_the_script_is_a_cpu_if_asked_for(tmp_path, given, device):
    package = tmp_path / "mxnet"
    package.mkdir()
    (package / "context.py").write_text(CONTEXT)
    (package / "kvstore.py").touch()
    (package / "__init__.py").write_text("from . import context\nfrom . import kvstore\n")
    environment = {**os.environ, "PYTHONPATH": f"{HOOK}:{tmp_path}", **given}
    environment.pop("DMLC_ROLE", None)

    code = "import mxnet; print(sorted(mxnet.context.Context.devstr2type.items()))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout == f"[('cpu', 1), ('cpu_pinned', 3), ('gpu', {device})]\n"
