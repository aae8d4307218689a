"""A training that loses a GPU: its next attempt goes on from its checkpoint with one Worker less, if it may."""

import time

import pytest
from waiting import eventually

GPU = {"limits": {"nvidia.com/gpu": "1"}}
SCRIPT = """
import argparse, logging, os, pathlib, time
import mxnet as mx
logging.basicConfig(level=logging.INFO)
parser = argparse.ArgumentParser()
parser.add_argument('--model-prefix')
parser.add_argument('--load-epoch', type=int, default=0)
args = parser.parse_args()

mx.random.seed(7)
x = mx.nd.random.uniform(-1, 1, shape=(256, 4))
kv = mx.kv.create('dist_sync')
prefix = args.model_prefix + ('-%d' % kv.rank if kv.rank else '')
weights = mx.model.load_checkpoint(prefix, args.load_epoch)[1] if args.load_epoch else None
print('rank', kv.rank, 'of', kv.num_workers, 'begins at', args.load_epoch, flush=True)
save = mx.callback.do_checkpoint(prefix)
def saved_or_killed(epoch, *state):
    save(epoch, *state)
    if kv.num_workers == 3 and epoch == 2 and kv.rank == 2:
        folder = pathlib.Path(args.model_prefix).parent
        (folder / 'trained').touch()
        while not (folder / 'die').exists():
            time.sleep(0.1)
        os.kill(os.getpid(), 9)
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2), name='softmax')
mx.mod.Module(net).fit(mx.io.NDArrayIter(x, x[:, 0] > 0, 32), num_epoch=6, begin_epoch=args.load_epoch,
    arg_params=weights, kvstore=kv, initializer=mx.init.One(), epoch_end_callback=saved_or_killed)
"""


def replica(count, folder, *command, resources=None):
    mounts = [{"name": "models", "mountPath": "/models"}]
    container = {"name": "mxnet", "image": "mxjob/mxnet:1.9.1", "command": list(command), "volumeMounts": mounts}
    volumes = [{"name": "models", "hostPath": {"path": str(folder)}}]
    spec = {"containers": [{**container, "resources": resources or {}}], "volumes": volumes}
    return {"replicas": count, "restartPolicy": "ExitCode", "template": {"spec": spec}}


def mxjob(name, replicas, **policy):
    spec = {"jobMode": "MXTrain", "runPolicy": policy, "mxReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "metadata": {"name": name}, "spec": spec}


@pytest.mark.exhaustive
def test_a_training_that_loses_a_gpu_goes_on_with_fewer_workers_from_its_checkpoint(home, mxnet_python, tmp_path):
    up = home.mxjob("local", "up", "--detach", "--cpus", "16", "--gpus", "3", "--restart-backoff", "1")
    assert up.returncode == 0, up.stderr
    (tmp_path / "train.py").write_text(SCRIPT)
    python = ("python", "/models/train.py", "--model-prefix", "/models/net")
    servers = replica(1, tmp_path, "python", "-c", "import mxnet")
    replicas = {"Scheduler": servers, "Server": servers, "Worker": replica(3, tmp_path, *python, resources=GPU)}
    # Suspended, it keeps its place by age, before the training's.
    home.create(mxjob("older", {"Worker": replica(1, tmp_path, "sleep", "600", resources=GPU)}, suspend=True))
    created = int(time.time())
    eventually(lambda: int(time.time()) > created)
    home.create(mxjob("train", replicas, resume={}, minWorkers=2))
    eventually((tmp_path / "trained").exists)

    home.patch("mxjob", "older", {"spec": {"runPolicy": {"suspend": False}}})
    home.wait_until("mxjob", "older", lambda job: "PodsScheduled" in str(job.get("status")))
    (tmp_path / "die").touch()

    status = home.wait_for("train", "Succeeded")["status"]
    assert (status["fewerReplicas"], status["replicaStatuses"]["Worker"]) == ({"Worker": 2}, {"succeeded": 2})
    for index in range(2):
        log = home.log(f"train-worker-{index}")
        assert "goes on after epoch 3, from /models/net-0003.params, /models/net-1-0003.params\n" in log
        assert "of 2 begins at 3" in log
        assert "Epoch[5] Train-accuracy" in log
    told = home.mxjob("describe", "train").stdout
    assert "The job runs with 2 of 3 Workers" in told
