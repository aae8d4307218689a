"""A worker that stands still ends with 138 and says where; one that works, writes or has finished never does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import SECONDS

from mxnet_operator.builders.fail_fast import HOOK
from mxnet_operator.readers.worker_logs import stall_in, stall_text, stalled_workers

COMPUTES = "import time\nend = time.process_time() + 1.4\nwhile time.process_time() < end: pass"
STANDS_STILL = "import threading; threading.Event().wait()"

FINISHED = """
import sys, time
from types import SimpleNamespace
class KVStore:
    handle = 1
library = SimpleNamespace(MXKVStoreFree=lambda handle: time.sleep(2))
sys.modules.update({"mxnet.kvstore": SimpleNamespace(KVStore=KVStore), "mxnet.base": SimpleNamespace(_LIB=library)})
store = KVStore()
"""
"""Script that has ended, and waits in the exit barrier for the other workers."""
ASSEMBLES = """
import mxnet, os, time
path = os.path.join(os.path.dirname(mxnet.__file__), "kvstore.py")
exec(compile("def create(): time.sleep(6)", path, "exec"))
create()
"""
IN_PDB = """
import os, pdb, threading
reads, writes = os.pipe()
os.dup2(reads, 0)
threading.Timer(2, os.write, (writes, b"continue\\n")).start()
pdb.set_trace()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mxnet").mkdir()
    (tmp_path / "mxnet" / "__init__.py").write_text(
        "import time\ndef wait_to_read(seconds=1000):\n    time.sleep(seconds)\n"
    )
    return tmp_path


def run(folder: Path, script: str, timeout: str = "1") -> "subprocess.CompletedProcess[str]":
    (folder / "train.py").write_text(script)
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{HOOK}:{folder}",
        "DMLC_ROLE": "worker",
        "MXJOB_STALL_TIMEOUT": timeout,
    }
    command = [sys.executable, "train.py"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=SECONDS)


def test_it_ends_with_138_and_its_last_lines_say_where(folder: Path) -> None:
    ended = run(folder, f"import mxnet\nprint('batch 1', end='')\n{STANDS_STILL}")
    assert (ended.returncode, ended.stdout) == (138, "batch 1")
    line = ended.stderr.splitlines()[-1]
    assert line.startswith("mxjob: stalled for 1 s, without CPU or output, at ")
    assert line.endswith("train.py:3, in wait")
    assert (
        stall_text(stalled_workers({"worker-0": stall_in(line)}))
        == "stalled for 1s: worker-0 stands at train.py:3 in wait"
    )
    assert f'train.py", line 3, in <module>\n    {STANDS_STILL}' in ended.stderr


def test_one_that_waits_in_mxnet_says_in_what(folder: Path) -> None:
    ended = run(folder, "import mxnet\ndef step():\n    mxnet.wait_to_read()\nstep()")
    assert ended.returncode == 138
    line = ended.stderr.splitlines()[-1]
    assert line.endswith("train.py:3, in MXNet's wait_to_read: do all workers make as many batches?")
    said = "stalled for 1s: worker-0 waits in MXNet's wait_to_read at train.py:3 (uneven batches?)"
    assert stall_text(stalled_workers({"worker-0": stall_in(line)})) == said


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {COMPUTES!r}])\n{COMPUTES}",
            id="its child computes, and then itself",
        ),
        pytest.param(
            "import os, time\nend = time.time() + 3\nwhile time.time() < end: os.system('sum /bin/* >&2')",
            id="its children compute one by one",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(ASSEMBLES, id="waits for the gang", marks=pytest.mark.exhaustive),
        pytest.param("import time\nfor _ in range(10):\n    time.sleep(0.2); print(_, flush=True)", id="writes"),
        pytest.param(FINISHED, id="has finished"),
        pytest.param(IN_PDB, id="is debugged", marks=pytest.mark.exhaustive),
        pytest.param("mxnet.wait_to_read(2.5)", id="waits in MXNet, and not for three seconds beyond the limit"),
    ],
)
def test_one_that_works_is_left_alone(folder: Path, script: str) -> None:
    assert run(folder, f"import mxnet\n{script}").returncode == 0


@pytest.mark.exhaustive
def test_without_a_limit_it_says_so_and_goes_on(folder: Path) -> None:
    script = "import mxjob_stall, time\nmxjob_stall.NOTICED_AFTER = 0.6\nimport mxnet\ntime.sleep(3)\nprint('done')"
    ended = run(folder, script, timeout="")
    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert ended.stderr.count("mxjob: stalled") == 1


def test_a_gang_that_is_not_complete_after_a_minute_is_reported_and_not_ended(folder: Path) -> None:
    assembles = f"import mxjob_stall\nmxjob_stall.GANG_NOTICED_AFTER = 1.2\n{ASSEMBLES.replace('6', '3')}print('done')"
    ended = run(folder, assembles)
    assert (ended.returncode, ended.stdout) == (0, "done\n")
    (line,) = (each for each in ended.stderr.splitlines() if "mxjob: " in each)
    joined = {"worker-0": stall_in(line), "worker-1": ""}
    assert (
        stall_text(stalled_workers(joined))
        == "waits for the gang for 1s: joined by worker-0 at train.py:7, but not by worker-1"
    )
    joined["worker-1"] = stall_in(line)
    assert stall_text(stalled_workers(joined)).endswith(
        "but not by a server, the scheduler, or a worker that sets DMLC_* itself"
    )
