"""The example script by itself, in one process with real MXNet: what it prints, writes and survives."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from mxnet_operator.api.validation import validate
from mxnet_operator.readers.log_figures import read_line

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"
EPOCHS = 2


def run(python, folder, *arguments, **environment):
    """Run the script in a folder; its output is all of stdout and stderr."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("DMLC_", "PYTHONPATH"))}
    return subprocess.run(
        [python, EXAMPLE / "train.py", *arguments],
        cwd=folder,
        env={**outer, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def metrics_in(output):
    return [each for line in output.splitlines() if (each := read_line(line)) and each.batch is None]


def epochs_in(output):
    """The epochs whose validation accuracy was printed, in order."""
    return [each.number for each in metrics_in(output) if "Validation-accuracy" in each.values]


@pytest.fixture(scope="module")
def trained(mxnet_python, tmp_path_factory):
    """A folder in which the script has trained for two epochs, and what it printed."""
    folder = tmp_path_factory.mktemp("digits")
    done = run(mxnet_python, folder, "--epochs", str(EPOCHS), "--result", "result.json")
    assert done.returncode == 0, done.stdout
    return folder, done.stdout


@pytest.fixture
def checkpointed(trained, tmp_path):
    """A folder of the test's own with the checkpoints of two epochs."""
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    for file in (trained[0] / "checkpoints").iterdir():
        (checkpoints / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.mark.exhaustive
def test_the_usual_lines_of_mxnet_are_printed_for_each_epoch(trained):
    metrics = metrics_in(trained[1])
    for name in ("Train-accuracy", "Validation-accuracy", "Train-cross-entropy"):
        assert [each.number for each in metrics if name in each.values] == [0, 1]
    assert "Epoch[1] Time cost=" in trained[1]
    assert "samples/sec\taccuracy=" in trained[1]
    assert "seed 42" in trained[1]


def test_the_result_is_the_accuracy_with_its_history(trained):
    result = json.loads((trained[0] / "result.json").read_text())
    assert result["epochs"] == EPOCHS
    assert result["accuracy"] == result["validation_accuracy"][-1] > 0.9
    assert [len(result[name]) for name in ("train_accuracy", "validation_accuracy", "loss")] == [EPOCHS] * 3
    assert result["loss"][1] < result["loss"][0]


def test_a_resumed_run_goes_on_with_the_next_epoch(mxnet_python, checkpointed):
    done = run(mxnet_python, checkpointed, "--epochs", "3", "--result", "result.json")
    assert done.returncode == 0, done.stdout
    assert epochs_in(done.stdout) == [2]
    result = json.loads((checkpointed / "result.json").read_text())
    assert result["epochs"] == len(result["validation_accuracy"]) == 3
    assert result["accuracy"] > 0.9


@pytest.mark.exhaustive
def test_a_finished_run_is_not_trained_again_and_keeps_its_result(mxnet_python, checkpointed, trained):
    done = run(mxnet_python, checkpointed, "--epochs", str(EPOCHS), "--result", "result.json")
    assert done.returncode == 0, done.stdout
    assert "Nothing left to train" in done.stdout
    before, after = (json.loads((folder / "result.json").read_text()) for folder in (trained[0], checkpointed))
    assert {**before, "seconds": 0} == {**after, "seconds": 0}


@pytest.mark.exhaustive
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(mxnet_python, checkpointed):
    weights = checkpointed / "checkpoints" / "digits-0001.params"
    weights.write_bytes(weights.read_bytes()[:1000])
    done = run(mxnet_python, checkpointed, "--epochs", str(EPOCHS))
    assert done.returncode == 0, done.stdout
    assert "digits-0001.json can't be used" in done.stdout
    assert epochs_in(done.stdout) == [1]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--epochs", "0"], "argument --epochs: 0 isn't above 0"),
        (["--epochs", "many"], "argument --epochs: invalid positive value: 'many'"),
        (["--kv-store", "dist_async"], "argument --kv-store: invalid choice: 'dist_async'"),
        (["--kv-store", "dist_sync"], "--kv-store dist_sync needs DMLC_ROLE"),
        (["--batch-size", "2000"], "--batch-size 2000 is more than a worker's share of 1437 images"),
        (["--learning-rate", "nan"], "argument --learning-rate: nan isn't above 0"),
        (["--result", "nowhere/result.json"], "--result nowhere/result.json: there is no folder nowhere"),
        (["--epoch-count", "3"], "unrecognized arguments: --epoch-count 3"),
    ],
)
def test_a_wrong_option_ends_the_script_before_mxnet_is_imported(mxnet_python, tmp_path, arguments, says):
    (tmp_path / "mxnet.py").write_text("raise SystemExit(99)\n")
    done = run(mxnet_python, tmp_path, *arguments, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert says in done.stdout


WRITE_LONG_RESULT = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import train
history = {name: [round(n / 7919, 4) for n in range(1000)] for name in train.HISTORY}
pathlib.Path("message").write_text("from before, and longer than what comes" * 200)
train.write_result(pathlib.Path("message"), {"accuracy": 0.98, "epochs": 1000, **history})
"""


@pytest.mark.exhaustive
def test_a_long_history_is_thinned_to_fit_a_termination_message(mxnet_python, tmp_path):
    subprocess.run([mxnet_python, "-c", WRITE_LONG_RESULT, EXAMPLE], cwd=tmp_path, check=True)
    text = (tmp_path / "message").read_text()
    result = json.loads(text)
    assert len(text.encode()) <= 3500
    assert (result["accuracy"], result["epochs"]) == (0.98, 1000)
    assert result["loss"][-1] == round(999 / 7919, 4)
    assert round(1000 / len(result["loss"])) == result["every"]


def test_the_job_of_the_example_is_valid_and_runs_the_script_it_comes_with():
    job = yaml.safe_load((EXAMPLE / "mxjob.yaml").read_text())
    assert validate(job) == []
    for replica in job["spec"]["mxReplicaSpecs"].values():
        (container,) = replica["template"]["spec"]["containers"]
        assert (container["image"], container["command"]) == ("mxjob/digits:1.0", ["python", "train.py"])
