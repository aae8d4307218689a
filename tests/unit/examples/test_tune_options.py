"""What examples/tune/tune.py takes from its environment; it reads its options before it imports TVM."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import SECONDS

SCRIPT = Path(__file__).resolve().parents[3] / "examples" / "tune" / "tune.py"


def run(*args, **variables):
    own = {name: value for name, value in os.environ.items() if not name.startswith("MXTUNE_")}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *args],
        env={**own, "COLUMNS": "200", **{f"MXTUNE_{name}": value for name, value in variables.items()}},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_an_option_that_is_not_given_comes_from_the_environment():
    done = run("--help", TRIALS="7", DATABASE_URI="file:///data/db", WARM_START="0", TARGET="llvm")
    assert done.returncode == 0, done.stderr
    for default in ("default: 7", "default: file:///data/db", "default: 0", "default: llvm"):
        assert default in done.stdout


def test_an_empty_variable_is_as_good_as_none():
    assert run("--help", TRIALS="", DATABASE_URI="").stdout == run("--help").stdout


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("TRIALS", "0", "0 is not a whole number above 0"),
        ("TARGET", "cuda", "is not for a CPU"),
        ("TARGET", "llvm -mcpu=skylake", '{"kind": "llvm", "mcpu": "skylake"}'),
        ("TARGET", "{llvm}", "is not JSON"),
        ("DATABASE_URI", "s3://bucket/db", "mount what is to be kept as a volume"),
        ("WARM_START", "no", "neither 1 nor 0"),
        ("MODEL_URI", "resnet", "this example has no such choice"),
        ("TUNER", "xgb", "this example has no such choice"),
        ("EARLY_STOPPING", "50", "this example has no such choice"),
    ],
)
def test_what_the_script_cant_follow_ends_it_with_a_word_on_what_to_do(variable, value, said):
    done = run(**{variable: value})
    assert done.returncode == 2
    assert said in done.stderr
