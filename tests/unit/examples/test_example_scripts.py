"""What the examples' scripts do without TVM or MXNet: their options, their results, and what ends them."""

import importlib.util
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from waiting import SECONDS

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TUNE, START = EXAMPLES / "tune" / "tune.py", EXAMPLES / "tune" / "start.py"
TRAIN = EXAMPLES / "image-classification" / "train.py"
FROM_TVM = ("tvm", "tvm.ir", "tvm.ir.utils", "tvm.s_tir", "tvm.support", "tvm.support.popen_pool")


class Base:
    """A class of TVM's from which the script derives its own."""


@pytest.fixture
def tune(monkeypatch):
    """examples/tune/tune.py as a module, before modules of TVM that have nothing in them."""
    for name in (*FROM_TVM, "numpy", "tvm.s_tir.tensor_intrin"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    sys.modules["tvm.ir.utils"].derived_object = lambda each: each
    sys.modules["tvm.s_tir"].meta_schedule = MagicMock(
        builder=MagicMock(PyBuilder=Base), runner=MagicMock(PyRunner=Base, PyRunnerFuture=Base)
    )
    return module(TUNE)


@pytest.fixture
def train(monkeypatch):
    """examples/image-classification/train.py as a module, before an MXNet that only notes how it is called."""
    for name in ("mxnet", "numpy", "sklearn", "sklearn.datasets"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    return module(TRAIN)


def module(path):
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def run(script, *args, **variables):
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MXTUNE_", "DMLC_", "MX_"))}
    return subprocess.run(
        [sys.executable, str(script), *args],
        env={**own, "COLUMNS": "200", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def result(servers, trials, **more):
    names = [f"tunerserver-{number}" for number in range(servers)]
    return {
        **more,
        "trials": trials,
        "tuned_ms": 0.1,
        "servers": dict.fromkeys(names, trials // max(servers, 1)),
        "trials_ms": [0.1234] * trials,
        "trials_on": [number % max(servers, 1) for number in range(trials)],
    }


@pytest.mark.parametrize("servers", [0, 1, 2, 100, 160, 1000])
@pytest.mark.parametrize("trials", [1, 16, 10_000])
@pytest.mark.parametrize("uri", ["file:///data", "file:///" + "d" * 8000])
def test_a_result_of_any_size_becomes_text_that_is_kept_whole_where_its_figures_fit(tune, servers, trials, uri):
    whole = result(servers, trials, artifact_uri=uri)
    text = tune.as_text(dict(whole))
    kept = json.loads(text)
    assert len(text) <= tune.RESULT_BYTES or len(uri) > tune.RESULT_BYTES
    assert (kept["trials"], kept["tuned_ms"]) == (trials, 0.1)
    assert len(kept["trials_ms"]) == len(kept["trials_on"])
    assert kept == whole or len(json.dumps(whole)) > tune.RESULT_BYTES
    assert "servers" in kept or kept["trials_ms"] == []


@pytest.mark.parametrize(
    ("trials", "failures", "said"),
    [
        (
            [(None, "no server answered in time")],
            [],
            "None of 1 trials could be measured; the last: no server answered",
        ),
        ([], ["no LLVM", "no target"], "None of 2 candidates could be compiled; the last: no target"),
        ([], [], "no candidate"),
    ],
)
def test_a_tuning_without_a_measurement_says_why(tune, trials, failures, said):
    assert said in tune.why_none(trials, failures)


@pytest.mark.parametrize("kind", ["worker", "server", "scheduler"])
def test_a_training_jobs_replica_is_told_that_the_start_of_a_tuning_is_not_for_it(kind):
    config = {"cluster": {kind: [{"url": "a", "port": 9091}]}, "labels": {}, "task": {"type": kind, "index": 0}}
    done = run(START, "python", "tune.py", MX_CONFIG=json.dumps(config))
    assert (done.returncode, done.stderr.strip()) == (
        1,
        f"start.py is for tuning jobs; a replica of type {kind} has nothing to do here",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--num-examples", "50000", "--batch-size", "128"], "--batch-size 128 is more than a worker's share of 1437"),
        (["--num-examples", "100", "--batch-size", "10"], "--batch-size 10 is more than a worker's share of 100"),
        (["--lr-step-epochs", "8,6"], "8,6 must rise"),
        (["--lr-step-epochs", "6,6"], "6,6 must rise"),
        (["--lr-step-epochs", "0,6"], "0 is not a whole number above 0"),
    ],
)
def test_an_option_that_no_training_can_follow_ends_it_before_mxnet_is_imported(given, said):
    done = run(TRAIN, "--kv-store", "dist_sync", *given, DMLC_ROLE="worker", DMLC_NUM_WORKER="12")
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(("epochs", "falls"), [("6,8", [60, 80]), ("3", [30]), ("", None)])
def test_the_learning_rate_falls_at_the_epochs_that_are_given_and_stays_where_none_is(train, epochs, falls):
    options = types.SimpleNamespace(lr_step_epochs=train.epochs(epochs), lr_factor=0.1, lr=0.05)
    schedule = train.schedule_of(options, 10)
    made = train.mx.lr_scheduler.MultiFactorScheduler
    if falls is None:
        assert schedule is None
        made.assert_not_called()
    else:
        made.assert_called_once_with(falls, factor=0.1, base_lr=0.05)
