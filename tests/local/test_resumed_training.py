"""An unchanged script of MXNet's usual form, killed while it trains: its next attempt goes on where it was."""

import json

import pytest

SCRIPT = """
import argparse, logging, os, sys
import mxnet as mx
logging.basicConfig(level=logging.INFO)
parser = argparse.ArgumentParser()
parser.add_argument('--model-prefix')
parser.add_argument('--load-epoch', type=int)
args = parser.parse_args()

mx.random.seed(7)
x = mx.nd.random.uniform(-1, 1, shape=(256, 4))
kv = mx.kv.create('dist_sync')
weights, begin = None, 0
prefix = args.model_prefix + ('-%d' % kv.rank if kv.rank else '')
if args.load_epoch:
    _, weights, _ = mx.model.load_checkpoint(prefix, args.load_epoch)
    begin = args.load_epoch

net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2), name='softmax')
mod = mx.mod.Module(net)
save = mx.callback.do_checkpoint(prefix)
def saved_or_killed(epoch, *state):
    save(epoch, *state)
    if DIES and not begin and epoch == 3 and kv.rank == 0:
        os.truncate(prefix + '-0004.params', 50)
        os.kill(os.getpid(), 9)
mod.fit(mx.io.NDArrayIter(x, x[:, 0] > 0, 32), num_epoch=6, begin_epoch=begin, arg_params=weights, kvstore=kv,
        initializer=mx.init.One(), optimizer_params={'learning_rate': 0.5}, epoch_end_callback=saved_or_killed)
print('weights', mod.get_params()[0]['fullyconnected0_weight'].asnumpy().round(4).tolist(), flush=True)
"""


def trained(cluster, folder, *, dies):
    """The log of a job whose first attempt may die in epoch 3, and what else `mxjob run` said."""
    folder.mkdir()
    (folder / "models").mkdir()
    (folder / "train.py").write_text(SCRIPT.replace("DIES", str(dies)))
    command = ["run", str(folder / "train.py"), "--workers", "2", "--mount", f"{folder}/models:/models", "--resume"]
    environment = {"KUBECONFIG": str(cluster.kubeconfig)}
    done = cluster.mxjob(*command, "--", "--model-prefix", "/models/net", environment=environment)
    assert done.returncode == 0, done.stderr
    return done


def weights(log):
    return json.loads(log.rpartition("weights ")[2].splitlines()[0])


@pytest.mark.exhaustive
def test_the_next_attempt_begins_where_the_newest_whole_checkpoint_ends(local_cluster, tmp_path):
    disturbed = trained(local_cluster, tmp_path / "killed", dies=True)
    undisturbed = trained(local_cluster, tmp_path / "calm", dies=False)
    first, second = disturbed.stdout.split("mxjob: attempt 1 goes on after epoch 3, from ")
    assert "Epoch[2] Train-accuracy" in first
    assert "Epoch[2]" not in second
    assert "Epoch[3] Train-accuracy" in second
    assert weights(second) == weights(undisturbed.stdout)
    assert "exited with code 137" in disturbed.stderr
