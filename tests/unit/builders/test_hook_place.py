"""A script that sets DMLC_* itself runs in the place that its pod has in the job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mxnet_operator.builders.fail_fast import HOOK

BASE = """
import ctypes, os, sys
class Library(ctypes.CDLL):
    def MXKVStoreCreate(self):
        print("%s at %s" % (os.environ["DMLC_ROLE"], os.environ["DMLC_PS_ROOT_URI"]))
        print("called by " + sys._getframe(1).f_code.co_name)
_LIB = Library(None)
"""
KVSTORE = """
from mxnet.base import _LIB
def create():
    _LIB.MXKVStoreCreate()
"""
POD = {"DMLC_ROLE": "worker", "DMLC_PS_ROOT_URI": "127.1.2.3", "DMLC_NUM_WORKER": "2"}
SETS = """
import os
os.environ['DMLC_ROLE'] = 'server'
os.environ.update({'DMLC_PS_ROOT_URI': '10.0.0.1', 'DMLC_NUM_WORKER': '2'})
os.environ['PS_VERBOSE'] = '1'
"""
JOINS = "import mxnet\nmxnet.kvstore.create()\n"
DELETES = "import mxnet, os\ndel os.environ['DMLC_PS_ROOT_URI']\nmxnet.kvstore.create()\n"
STARTS = "import subprocess, sys\nsubprocess.Popen([sys.executable, 'joins.py']).wait()\nprint('then')\n"
HAS_STARTED = "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\n"
FORKS = f"""
import multiprocessing, os
def join():
    {"; ".join(SETS.split(chr(10))[1:])}
    import mxnet
    mxnet.kvstore.create()
child = multiprocessing.get_context("fork").Process(target=join)
child.start(); child.join()
"""
USED = "The pod's values are used: delete what sets others"
OF_POD = "worker at 127.1.2.3\ncalled by create\n"
ITS_OWN = "server at 10.0.0.1\ncalled by create\n"
TOLD = (
    "mxjob: FILE:4 sets DMLC_PS_ROOT_URI=10.0.0.1 (of this pod: 127.1.2.3), "
    "FILE:3 sets DMLC_ROLE=server (of this pod: worker). "
)


@pytest.mark.parametrize(
    ("script", "joined", "said"),
    [
        pytest.param(JOINS, OF_POD, "", id="sets nothing"),
        pytest.param(SETS + JOINS, OF_POD, f"{TOLD}{USED}\n", id="sets them before the import"),
        pytest.param(
            DELETES,
            OF_POD,
            f"mxjob: FILE:2 deletes DMLC_PS_ROOT_URI (of this pod: 127.1.2.3). {USED}\n",
            id="deletes one after the import",
        ),
        pytest.param(SETS + STARTS, f"{ITS_OWN}then\n", "", id="means a program that it starts"),
        pytest.param(FORKS, ITS_OWN, "", id="means a process that it forks"),
        pytest.param(
            SETS + HAS_STARTED + JOINS + "child.kill()",
            ITS_OWN,
            f"{TOLD}They stay, since the script has started processes: what it joins is not this job\n",
            id="has started processes",
        ),
    ],
)
@pytest.mark.parametrize("role", ["worker", "scheduler"])
def test_the_pod_s_values_are_used_and_the_line_that_sets_others_is_named(
    tmp_path: Path, script: str, joined: str, said: str, role: str
) -> None:
    package = tmp_path / "mxnet"
    package.mkdir()
    (package / "__init__.py").write_text("from . import base\nfrom . import kvstore\n")
    (package / "base.py").write_text(BASE)
    (package / "kvstore.py").write_text(KVSTORE)
    (tmp_path / "joins.py").write_text(JOINS)
    file = tmp_path / "train.py"
    file.write_text(script)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{HOOK}:{tmp_path}", **POD, "DMLC_ROLE": role}
    ended = subprocess.run([sys.executable, file], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == joined.replace("worker", role)
    assert ended.stderr == said.replace("FILE", "train.py").replace("worker", role)
