"""An unchanged script of MXNet's usual form, killed while it trains: its next attempt goes on where it was."""

import json
import re

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


PLAIN = SCRIPT.replace("('-%d' % kv.rank if kv.rank else '')", "''")
"""Script whose workers all save under one name, as those do that hand `--model-prefix` to `do_checkpoint`."""

RNN = """
import argparse, logging, os
import mxnet as mx
logging.basicConfig(level=logging.INFO)
parser = argparse.ArgumentParser()
parser.add_argument('--model-prefix')
parser.add_argument('--load-epoch', type=int, default=0)
args = parser.parse_args()

mx.random.seed(7)
kv = mx.kv.create('dist_sync')
sentences = [[1 + (i + j) % 7 for j in range(5)] for i in range(64)]
data = mx.rnn.BucketSentenceIter(sentences, 16, buckets=[5], invalid_label=0, layout='TN')
cell = mx.rnn.SequentialRNNCell()
cell.add(mx.rnn.LSTMCell(8, prefix='l0_'))

def sym_gen(length):
    embedded = mx.sym.Embedding(mx.sym.var('data'), input_dim=9, output_dim=4, name='embed')
    cell.reset()
    out, _ = cell.unroll(length, inputs=embedded, merge_outputs=True, layout='TNC')
    out = mx.sym.FullyConnected(mx.sym.Reshape(out, shape=(-1, 8)), num_hidden=9, name='pred')
    label = mx.sym.Reshape(mx.sym.var('softmax_label'), shape=(-1,))
    return mx.sym.SoftmaxOutput(out, label, name='softmax'), ('data',), ('softmax_label',)

weights = None
if args.load_epoch:
    _, weights, _ = mx.rnn.load_rnn_checkpoint(cell, args.model_prefix, args.load_epoch)
save = mx.rnn.do_rnn_checkpoint(cell, args.model_prefix)
def saved_or_killed(epoch, *state):
    save(epoch, *state)
    if DIES and not args.load_epoch and epoch == 3 and kv.rank == 0:
        os.truncate(args.model_prefix + '-0004.params', 50)
        os.kill(os.getpid(), 9)
mod = mx.mod.BucketingModule(sym_gen, default_bucket_key=data.default_bucket_key)
mod.fit(data, eval_metric=mx.metric.Perplexity(0), num_epoch=6, begin_epoch=args.load_epoch, arg_params=weights,
        kvstore=kv, initializer=mx.init.Xavier(), epoch_end_callback=saved_or_killed)
"""

GLUON = """
import argparse, os
import mxnet as mx
from mxnet import autograd, gluon
parser = argparse.ArgumentParser()
parser.add_argument('--start-epoch', type=int, default=0)
parser.add_argument('--resume', default='')
args = parser.parse_args()

kv = mx.kv.create('dist_sync')
net = gluon.nn.Dense(1, in_units=4)
net.initialize(mx.init.One())
if args.resume:
    net.load_parameters(args.resume)
trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.1}, kvstore=kv)
x = mx.nd.random.uniform(-1, 1, shape=(32, 4))
for epoch in range(args.start_epoch, 6):
    with autograd.record():
        loss = ((net(x) - x[:, 0:1]) ** 2).mean()
    loss.backward()
    trainer.step(1)
    print('Epoch[%d] Train-mse=%f' % (epoch, loss.asscalar()), flush=True)
    if kv.rank == 0:
        path = '/models/net_%d_%.4f.params' % (epoch, loss.asscalar())
        net.save_parameters(path)
        if DIES and not args.resume and epoch == 4:
            os.truncate(path, 50)
            os.kill(os.getpid(), 9)
"""
"""Script as GluonCV's: the name of the file has a figure in it, and its paths are in the code."""


FIT = ("--resume", "--", "--model-prefix", "/models/net")
LOADED = "--resume {checkpoint} --start-epoch {epoch+1}"
FILES = ("--checkpoint", "/models/net_{epoch}_*.params", "--resume-args", LOADED)


def trained(cluster, folder, *, dies, script=SCRIPT, options=FIT):
    """The log of a job whose first attempt may die in epoch 3, and what else `mxjob run` said."""
    folder.mkdir()
    (folder / "models").mkdir()
    (folder / "train.py").write_text(script.replace("DIES", str(dies)))
    command = ["run", str(folder / "train.py"), "--workers", "2", "--mount", f"{folder}/models:/models"]
    environment = {"KUBECONFIG": str(cluster.kubeconfig)}
    done = cluster.mxjob(*command, *options, environment=environment)
    assert done.returncode == 0, done.stderr
    return done


def weights(log):
    return json.loads(log.rpartition("weights ")[2].splitlines()[0])


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("script", "options", "file"),
    [
        pytest.param(PLAIN, FIT, r"net-000\1\.params", id="do_checkpoint"),
        pytest.param(RNN, FIT, r"net-000\1\.params", id="do_rnn_checkpoint"),
        pytest.param(GLUON, FILES, r"net_\1_\d\.\d{4}\.params", id="save_parameters"),
    ],
)
def test_it_goes_on_from_the_file_that_all_workers_share(local_cluster, tmp_path, script, options, file):
    done = trained(local_cluster, tmp_path / "job", dies=True, script=script, options=options)
    # The other worker may have saved its epoch 4 after the first one had cut that off.
    goes_on = re.search(rf"mxjob: attempt 1 goes on after epoch ([34]), from \S*/{file}\n", done.stdout)
    assert goes_on, done.stdout
    first, second = done.stdout[: goes_on.start()], done.stdout[goes_on.end() :]
    assert "Epoch[2]" in first
    assert "Epoch[2]" not in second
    assert "Epoch[5]" in second


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
