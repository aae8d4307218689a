"""A new attempt of an unchanged script goes on from the newest complete checkpoint of the one before."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mxnet_operator.builders.fail_fast import HOOK

FIT = {"checkpoint": "{--model-prefix}{-rank}-{epoch}.params", "args": ["--load-epoch", "{epoch}"]}
OWN = {"checkpoint": "ckpt/{epoch}/net[{rank}].params", "args": []}
SCRIPT = "import os, sys\nprint(sys.argv[1:], os.environ.get('MXJOB_RESUME_EPOCH'))\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a script, and in place of MXNet one whose files can be loaded unless they are empty."""
    (tmp_path / "mxnet.py").write_text(
        "import os\nclass nd:\n    def load(path):\n        assert os.path.getsize(path)\n"
    )
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def run(folder: Path, *command: str, asked: object = FIT, workers: int = 2) -> "subprocess.CompletedProcess[str]":
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{HOOK}:{folder}",
        "DMLC_ROLE": "worker",
        "DMLC_NUM_WORKER": str(workers),
        "MXJOB_ATTEMPT": "1",
        "MXJOB_RESUME": json.dumps(asked),
    }
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended


def saved(folder: Path, *names: str, text: str = "weights") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_the_newest_epoch_that_every_rank_has_whole_is_loaded(folder: Path) -> None:
    saved(folder, "m-0001.params", "m-1-0001.params", "m-0002.params", "m-1-0002.params", "m-0003.params")
    saved(folder, "m-1-0002.params", text="")  # killed while it was saved
    saved(folder, "m-0009.states", "n-0009.params")
    ended = run(folder, sys.executable, "train.py", "--model-prefix", "m")
    assert ended.stdout == "['--model-prefix', 'm', '--load-epoch', '1'] 1\n"
    assert ended.stderr == "mxjob: attempt 1 goes on after epoch 1, from m-0001.params, m-1-0001.params\n"


def test_a_pattern_of_the_users_own_gives_the_epoch_alone(folder: Path) -> None:
    saved(folder, "ckpt/7/net[0].params", "ckpt/8/net0.params")
    assert run(folder, sys.executable, "train.py", asked=OWN, workers=1).stdout == "[] 7\n"


def test_without_a_checkpoint_it_starts_anew_and_says_so(folder: Path) -> None:
    ended = run(folder, sys.executable, "train.py", "--model-prefix=models/m")
    assert ended.stdout == "['--model-prefix=models/m'] None\n"
    assert "attempt 1 starts anew: nothing complete is at models/m{-rank}-{epoch}.params" in ended.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("python -W ignore -u train.py --model-prefix m", "['--model-prefix', 'm', '--load-epoch', '1'] 1\n"),
        ("python -m train --model-prefix m", "['--model-prefix', 'm', '--load-epoch', '1'] 1\n"),
        # Neither a program that is started before the script nor one that the script starts is given its arguments.
        (
            "sh -c 'python prepare.py; python train.py --model-prefix m'",
            "[]\n['--model-prefix', 'm', '--load-epoch', '1'] 1\n",
        ),
        ("sh -c 'python -c \"import train\" --model-prefix m'", "['--model-prefix', 'm'] None\n"),
        ("python starts.py --model-prefix m", "['--model-prefix', 'm'] 1\n"),
    ],
)
def test_only_the_script_is_given_the_arguments(folder: Path, command: str, said: str) -> None:
    saved(folder, "m-0001.params")
    saved(folder, "prepare.py", text="import sys; print(sys.argv[1:])")
    starts = "import subprocess, sys; subprocess.run([sys.executable, 'train.py', '--model-prefix', 'm'])"
    saved(folder, "starts.py", text=starts)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run(folder, "env", f"PATH={path}", "sh", "-c", command, workers=1).stdout == said
