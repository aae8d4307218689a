"""`mxjob run train.py` as a newcomer types it: no cluster is chosen or running, and MXNet trains."""

import pytest

from mxnet_operator.local.home import running_state

TRAIN = """
import argparse
import mxnet as mx
import six
from common.data import batches

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
kv = mx.kv.create("dist_sync")
model = mx.mod.Module(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax"))
model.fit(batches(), num_epoch=parser.parse_args().epochs, kvstore=kv)
print("trained by", kv.num_workers, "workers with six", six.__version__)
"""
DATA = """
import mxnet as mx

def batches():
    data = mx.nd.random.uniform(shape=(64, 4))
    return mx.io.NDArrayIter(data, data[:, 0] > 0.5, batch_size=16)
"""


@pytest.fixture
def script(tmp_path):
    folder = tmp_path / "my project"
    (folder / "common").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "common" / "__init__.py").touch()
    (folder / "common" / "data.py").write_text(DATA)
    (folder / "train.py").write_text(TRAIN)
    (folder / "requirements.txt").write_text("six\n")
    return folder / "train.py"


@pytest.fixture
def newcomer(home, tmp_path):
    """A home without a cluster, of a user who has chosen none."""
    home.environment.pop("KUBECONFIG")
    home.environment["HOME"] = str(tmp_path)
    return home


def test_one_command_starts_the_cluster_and_trains_and_every_other_command_finds_it(newcomer, script, mxnet_python):
    done = newcomer.mxjob("run", str(script), "--workers", "2", "--", "--epochs", "2")

    assert done.returncode == 0, done.stderr
    assert "trained by 2 workers with six 1." in done.stdout
    assert "starting the local cluster; stop it with: mxjob local down\n" in done.stderr
    assert running_state(newcomer.files) is not None
    listed = newcomer.mxjob("get")
    assert (listed.returncode, "Succeeded" in listed.stdout) == (0, True)

    again = newcomer.mxjob("run", str(script), "--servers", "1", "--", "--epochs", "1")
    assert "installed before" not in again.stderr
    assert again.returncode == 0, again.stderr
    assert "starting" not in again.stderr
    assert "building" not in again.stderr


def test_a_conflict_ends_the_run_before_a_cluster_is_started(newcomer, script, mxnet_python):
    done = newcomer.mxjob("run", str(script), "--pip", "numpy>=1.24")

    assert done.returncode == 1
    assert "mxjob/mxnet:1.9.1 needs numpy 1.23.5" in done.stderr
    assert running_state(newcomer.files) is None


def test_a_module_that_is_missing_is_named_with_the_option_that_adds_it(local_cluster, tmp_path):
    (tmp_path / "train.py").write_text("import yaml\n")
    done = local_cluster.mxjob("run", str(tmp_path / "train.py"))

    assert done.returncode == 1
    assert done.stderr.endswith(f"yaml isn't in the image: mxjob run {tmp_path}/train.py --pip PyYAML\n")


def test_data_is_where_the_code_of_the_script_looks(local_cluster, tmp_path):
    for folder, name in ("pictures", "in ours"), ("labels", "beside us"), ("words", "at home"), ("more", "at a path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "name.txt").write_text(name)
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").write_text(
        "import os\n"
        "for path in 'data', '../data', os.path.expanduser('~/.mxnet/datasets'), '/data':\n"
        "    print(open(os.path.join(path, 'name.txt')).read())\n"
    )
    at = {"pictures": "data", "labels": "../data", "words": "~/.mxnet/datasets", "more": "/data:ro"}
    mounts = [word for folder, path in at.items() for word in ("--mount", f"{tmp_path}/{folder}:{path}")]
    done = local_cluster.mxjob("run", str(tmp_path / "project/train.py"), *mounts)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "in ours\nbeside us\nat home\nat a path\n"
    assert f"mounted: folder {tmp_path}/labels at ../data\n" in done.stderr


def test_an_unknown_image_is_explained_once(local_cluster):
    done = local_cluster.mxjob("run", "--image", "mxjob/digts:1.0", "--timeout", "8s", "--", "true")

    assert done.returncode == 124
    assert done.stderr.count("has no image mxjob/digts:1.0") == 1
    assert "Did you mean mxjob/digits:1.0?" in done.stderr
