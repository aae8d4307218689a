"""A worker whose log has a figure that is no number ends with 65 and says so, if the job asks for it."""

import os
import subprocess
import sys

import pytest
from waiting import SECONDS

from mxnet_operator.builders.fail_fast import HOOK


def run(script: str, *, is_asked_for: bool = True) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOOK), "DMLC_ROLE": "worker"}
    env |= {"MXJOB_FAIL_ON_DIVERGENCE": "1"} if is_asked_for else {}
    command = [sys.executable, "-c", f"{script}\nprint('went on')"]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=SECONDS)


@pytest.mark.parametrize(
    "line",
    [
        "Epoch[3] Train-cross-entropy=nan",
        "Epoch[0] Batch [20]\tSpeed: 3012.11 samples/sec\tcross-entropy=-inf",
        "[Epoch 3] Training: accuracy=0.1 loss=NaN",
        "Epoch 7. Loss: nan, Train_acc 0.09",
        "epoch 2, train loss [nan]",
        "Epoch 2: loss=nan best_acc=0.4",
        "Checkpoint [1]\tValidation-perplexity=nan",
        "Iteration 1: HR = nan, NDCG = 0.2",
    ],
)
def test_a_figure_that_is_no_number_ends_the_worker(line: str) -> None:
    for script in (f"print({line!r})", f"import logging; logging.basicConfig(level=20); logging.info({line!r})"):
        ended = run(script)
        assert (ended.returncode, "went on" in ended.stdout) == (65, False)
        assert ended.stderr.splitlines()[-1].startswith("mxjob: the training has diverged: ")
        assert ended.stderr.endswith(f"{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "Epoch[3] Train-accuracy=0.9",
        "Epoch[0] best_loss=inf",
        "Epoch 1: best val loss inf",
        "Epoch 1: information about nan handling",
        "loss=nan",
    ],
)
def test_other_lines_do_not(line: str) -> None:
    assert run(f"print({line!r})").returncode == 0


def test_the_streams_work_as_before() -> None:
    script = (
        "import subprocess, sys\n"
        "print('Epoch 1', end=' '); sys.stdout.writelines(['loss=', '0.5\\n']); sys.stdout.flush()\n"
        "assert sys.stdout.write('four') == 4 and sys.stdout.encoding and not sys.stdout.isatty()\n"
        "sys.stdout.buffer.write(b' bytes '); subprocess.run(['echo', 'child'], stdout=sys.stdout)"
    )
    ended = run(script)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("Epoch 1 loss=0.5\n") and "child" in ended.stdout


def test_nothing_is_read_where_the_job_does_not_ask_for_it() -> None:
    script = "import sys, io\nassert type(sys.stdout) is io.TextIOWrapper\nprint('Epoch[3] loss=nan')"
    assert run(script, is_asked_for=False).returncode == 0
