"""A new attempt of an unchanged script goes on from the newest complete checkpoint of the one before."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from mxnet_operator.builders.fail_fast import HOOK

FIT = {"checkpoint": "{--model-prefix}{-rank}-{epoch}.params", "args": ["--load-epoch", "{epoch}"]}
OWN = {"checkpoint": "ckpt/{epoch}/net[{rank}].params", "args": []}
SCRIPT = "import os, sys\nprint(sys.argv[1:], os.environ.get('MXJOB_RESUME_EPOCH'))\n"


SAVED = (
    struct.pack("<QQQIiiqqiii", 0x112, 0, 1, 0xF993FAC9, 0, 2, 2, 3, 1, 0, 0)
    + bytes(4 * 6)
    + struct.pack("<QQ", 1, 2)
    + b"fc"
)
"""One array of 2 x 3 float32, and its name, as `mx.nd.save` writes them."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a script."""
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def run(
    folder: Path, *command: str, asked: dict[str, Any] = FIT, workers: int = 2
) -> "subprocess.CompletedProcess[str]":
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{HOOK}:{folder}",
        "TMPDIR": tempfile.mkdtemp(dir=folder),
        "DMLC_ROLE": "worker",
        "DMLC_NUM_WORKER": str(workers),
        "MXJOB_ATTEMPT": "1",
        "MXJOB_RESUME": json.dumps({"since": int(time.time()), **asked}),
    }
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended


def saved(folder: Path, *names: str, data: bytes = SAVED) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def test_the_newest_epoch_that_every_rank_has_whole_is_loaded(folder: Path) -> None:
    saved(folder, "m-0001.params", "m-1-0001.params", "m-0002.params", "m-1-0002.params", "m-0003.params")
    saved(folder, "m-1-0002.params", data=SAVED[:-1])  # killed while it was saved
    saved(folder, "m-0009.states", "n-0009.params")
    ended = run(folder, sys.executable, "train.py", "--model-prefix", ".//m")
    assert ended.stdout == "['--model-prefix', './/m', '--load-epoch', '0001'] 1\n"
    assert ended.stderr == "mxjob: attempt 1 goes on after epoch 1, from m-0001.params, m-1-0001.params\n"


def test_fewer_workers_need_the_files_of_fewer_ranks_and_all_again_those_of_all(folder: Path) -> None:
    """Three ranks saved epoch 2, then two ranks epochs 3 and 4 while rank 2 had no node."""
    for epoch in range(1, 5):
        ranks = ("", "-1", "-2") if epoch < 3 else ("", "-1")
        saved(folder, *(f"m{rank}-000{epoch}.params" for rank in ranks))
    fit = (sys.executable, "train.py", "--model-prefix", "m")
    assert " 4\n" in run(folder, *fit, workers=2).stdout
    assert " 2\n" in run(folder, *fit, workers=3).stdout
    of_rank_0 = {"checkpoint": "{--model-prefix}-{epoch}.params", "args": []}
    assert " 4\n" in run(folder, *fit, asked=of_rank_0, workers=3).stdout


def test_a_pattern_of_the_users_own_gives_the_epoch_alone(folder: Path) -> None:
    saved(folder, "ckpt/7/net[0].params", "ckpt/8/net0.params")
    assert run(folder, sys.executable, "train.py", asked=OWN, workers=1).stdout == "[] 7\n"


@pytest.mark.parametrize("length", [1, 30, len(SAVED) - 30, len(SAVED) - 1])
def test_a_file_that_breaks_off_is_not_loaded(folder: Path, length: int) -> None:
    saved(folder, "m-0001.params")
    saved(folder, "m-0002.params", data=SAVED[:length])
    assert " 1\n" in run(folder, sys.executable, "train.py", "--model-prefix", "m", workers=1).stdout


def test_what_another_job_left_in_the_folder_is_not_loaded(folder: Path) -> None:
    saved(folder, "m-0001.params", "m-0002.params")
    os.utime(folder / "m-0002.params", (0, 0))
    assert " 1\n" in run(folder, sys.executable, "train.py", "--model-prefix", "m", workers=1).stdout


def test_arguments_may_name_the_file(folder: Path) -> None:
    saved(folder, "m-0001.params")
    asked = {**FIT, "args": ["--params={--model-prefix}-{epoch}.params"]}
    ended = run(folder, sys.executable, "train.py", "--model-prefix", "m", asked=asked, workers=1)
    assert "--params=m-0001.params" in ended.stdout


def test_without_a_checkpoint_it_starts_anew_and_says_so(folder: Path) -> None:
    ended = run(folder, sys.executable, "train.py", "--model-prefix=models/m")
    assert ended.stdout == "['--model-prefix=models/m'] None\n"
    assert "attempt 1 starts anew: nothing of this job is at models/m{-rank}-{epoch}.params" in ended.stderr


def test_all_ranks_load_the_file_of_rank_0_where_no_other_has_one(folder: Path) -> None:
    """`do_checkpoint(prefix)`, `do_rnn_checkpoint(cell, prefix)`: all workers write one file."""
    saved(folder, "m-0004.params", "m-symbol.json")
    fit = (sys.executable, "train.py", "--model-prefix", "m")
    assert run(folder, *fit, workers=3).stdout == "['--model-prefix', 'm', '--load-epoch', '0004'] 4\n"
    saved(folder, "m-2-symbol.json")  # fit.py of rank 2 has begun to save, so it loads nothing but its own
    ended = run(folder, *fit, workers=3)
    assert ended.stdout == "['--model-prefix', 'm'] None\n"
    assert "m-0004.params is there, but not m-1-0004.params; what was saved is now in before-at" in ended.stderr


@pytest.mark.parametrize(
    ("names", "asked", "arguments"),
    [
        (
            ("net-9.params", "net-10.params"),
            ("net-{epoch}.params", ["--resume", "{checkpoint}", "--start-epoch={epoch+1}"]),
            "['--resume', 'net-10.params', '--start-epoch=11'] 10\n",
        ),
        (
            ("ssd_0003_0.4100.params", "ssd_0003_0.5000.params", "ssd_best.params", "ssd_0007/x.params"),
            ("./ssd_{epoch}_*.params", ["--resume={checkpoint}"]),
            "['--resume=ssd_0003_0.5000.params'] 3\n",
        ),
    ],
)
def test_the_files_of_gluon_scripts_are_found_by_a_pattern(
    folder: Path, names: tuple[str, ...], asked: tuple[str, list[str]], arguments: str
) -> None:
    saved(folder, *names)
    os.utime(folder / names[0], (time.time() - 20,) * 2)
    fields = {"checkpoint": asked[0], "args": asked[1]}
    assert run(folder, sys.executable, "train.py", asked=fields).stdout == arguments


def test_what_a_new_beginning_would_overwrite_is_moved_and_named(folder: Path) -> None:
    cut = SAVED[:-1]
    numbered = {"checkpoint": "{--model-prefix}-{rank}-{epoch}.params", "args": []}
    cases: list[tuple[dict[str, Any], dict[str, bytes], str]] = [
        (FIT, {"m-0002.params": SAVED, "m-1-0001.params": SAVED}, "m-0002.params is there, but not m-1-0002.params"),
        (FIT, {"m-0001.params": cut, "m-symbol.json": b"{}"}, "m-0001.params breaks off"),
        (FIT, {"m_epoch5.params": SAVED}, "m_epoch5.params is there, but nothing at m{-rank}-{epoch}.params"),
        (numbered, {"m-0-3.params": SAVED, "m-0-4.params": SAVED}, "m-0-4.params is there, but not m-1-4.params"),
        (OWN, {"ckpt/7/net[0].params": SAVED, "ckpt/8/net[0].params": b""}, "ckpt/8/net[0].params breaks off"),
    ]
    for number, (asked, files, why) in enumerate(cases):
        place = folder / str(number)
        place.mkdir()
        (place / "train.py").write_text(SCRIPT)
        saved(place, "m-0009.params", "ckpt/9/net[0].params", "net-0009.params")
        for old in "m-0009.params", "ckpt/9/net[0].params":
            os.utime(place / old, (0, 0))  # another job's
        for name, data in files.items():
            saved(place, name, data=data)
        ended = run(place, sys.executable, "train.py", "--model-prefix", "m", asked=asked)
        assert ended.stdout == "['--model-prefix', 'm'] None\n"
        assert ended.stderr.startswith("mxjob: attempt 1 starts anew: ")
        assert why in ended.stderr
        kept = place / ("ckpt/before-attempt-1" if asked is OWN else "before-attempt-1")
        moved = {str(path.relative_to(kept)): path.read_bytes() for path in kept.rglob("*") if path.is_file()}
        assert moved == {name.removeprefix("ckpt/"): data for name, data in files.items()}, why
        assert (place / "m-0009.params").exists()
        assert (place / "net-0009.params").exists()
    ended = run(folder / "1", sys.executable, "train.py", "--model-prefix", "n")
    assert "nothing of this job is at n{-rank}-{epoch}.params; there is net-0009.params" in ended.stderr


def test_what_an_earlier_job_has_kept_is_not_overwritten(folder: Path) -> None:
    saved(folder, "m-0001.params", data=SAVED[:-1])
    saved(folder, "before-attempt-1/m-0001.params", data=b"kept")
    run(folder, sys.executable, "train.py", "--model-prefix", "m")
    assert (folder / "before-attempt-1/m-0001.params").read_bytes() == b"kept"
    assert (folder / "before-attempt-1/m-0001.params~").read_bytes() == SAVED[:-1]


def test_an_attempt_that_would_lose_what_it_cannot_move_ends(folder: Path) -> None:
    saved(folder, "m-0001.params", data=SAVED[:-1])
    (folder / "before-attempt-1").write_text("a file, where a folder is needed")
    with pytest.raises(AssertionError, match=r"can't start anew without losing m-0001.params"):
        run(folder, sys.executable, "train.py", "--model-prefix", "m")
    assert (folder / "m-0001.params").read_bytes() == SAVED[:-1]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("python -W ignore -u train.py --model-prefix m", "['--model-prefix', 'm', '--load-epoch', '0001'] 1\n"),
        ("cp train.py fit; python fit --model-prefix m", "['--model-prefix', 'm', '--load-epoch', '0001'] 1\n"),
        ("python -m train --model-prefix m", "['--model-prefix', 'm', '--load-epoch', '0001'] 1\n"),
        ("python -um train --model-prefix m", "['--model-prefix', 'm', '--load-epoch', '0001'] 1\n"),
        (
            "sh -c 'python train.py --model-prefix m; python train.py --model-prefix m'",
            "['--model-prefix', 'm', '--load-epoch', '0001'] 1\n['--model-prefix', 'm'] None\n",
        ),
        # Neither a program that is started before the script nor one that the script starts is given its arguments.
        (
            "sh -c 'python prepare.py; python train.py --model-prefix m'",
            "[]\n['--model-prefix', 'm', '--load-epoch', '0001'] 1\n",
        ),
        ("sh -c 'python -c \"import train\" --model-prefix m'", "['--model-prefix', 'm'] None\n"),
        ("python starts.py --model-prefix m", "['--model-prefix', 'm'] 1\n"),
    ],
)
def test_only_the_script_is_given_the_arguments(folder: Path, command: str, said: str) -> None:
    saved(folder, "m-0001.params")
    saved(folder, "prepare.py", data=b"import sys; print(sys.argv[1:])")
    starts = b"import subprocess, sys; subprocess.run([sys.executable, 'train.py', '--model-prefix', 'm'])"
    saved(folder, "starts.py", data=starts)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run(folder, "env", f"PATH={path}", "sh", "-c", command, workers=1).stdout == said


def test_a_training_that_was_not_taken_for_the_script_says_so(folder: Path) -> None:
    (folder / "mxnet.py").write_text("")
    (folder / "train.py").write_text("import mxnet")
    ended = run(folder, sys.executable, "train.py")
    assert "starts anew: its command is no script, or lacks an option that {--model-prefix}" in ended.stderr
