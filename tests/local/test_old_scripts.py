"""Scripts as people wrote them for MXNet 1.x, each of another API: two workers train, and the model comes home."""

import pytest

pytestmark = pytest.mark.exhaustive

DATA = """
import logging
import mxnet as mx
logging.basicConfig(level=logging.INFO)
mx.random.seed(7)
x = mx.nd.random.uniform(-1, 1, shape=(256, 4))
y = x[:, 0] > 0
"""
MODULE_WITH_A_METRIC_OF_ITS_OWN = """
@mx.metric.register
class Hits(mx.metric.Accuracy):
    pass

kv = mx.kv.create('dist_sync')
net = mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2)
mod = mx.mod.Module(mx.sym.SoftmaxOutput(net, name='softmax'))
saved = mx.callback.do_checkpoint('out/model') if kv.rank == 0 else None
import os
os.makedirs('out', exist_ok=True)
mod.fit(mx.io.NDArrayIter(x, y, 32), num_epoch=3, kvstore=kv, eval_metric='hits', epoch_end_callback=saved,
        optimizer_params={'learning_rate': 0.5})
"""
GLUON_WITH_A_TRAINER = """
from mxnet import autograd, gluon
kv = mx.kv.create('dist_sync')
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(8, activation='relu'), gluon.nn.Dense(2))
net.initialize()
net.hybridize()
trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.5}, kvstore=kv, update_on_kvstore=True)
entropy, metric = gluon.loss.SoftmaxCrossEntropyLoss(), mx.metric.Accuracy()
for epoch in range(3):
    metric.reset()
    for a, b in gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), 32):
        with autograd.record():
            out = net(a)
            loss = entropy(out, b)
        loss.backward()
        trainer.step(32)
        metric.update(b, out)
    print('[Epoch %d] Training: accuracy=%f' % (epoch, metric.get()[1]), flush=True)
net.export('gluon')
"""
SPARSE_WEIGHTS = """
kv = mx.kv.create('dist_async')
weight = mx.sym.var('weight', stype='row_sparse', shape=(4, 2))
out = mx.sym.sparse.dot(mx.sym.var('data', stype='csr'), weight)
mod = mx.mod.Module(mx.sym.SoftmaxOutput(out, name='softmax'))
with open('data.libsvm', 'w') as file:
    for values, label in zip(x.asnumpy(), y.asnumpy()):
        file.write('%d %s\\n' % (label, ' '.join('%d:%f' % each for each in enumerate(values))))
batches = mx.io.LibSVMIter(data_libsvm='data.libsvm', data_shape=(4,), batch_size=32)
mod.bind(batches.provide_data, batches.provide_label)
mod.init_params(mx.init.Normal(0.01))
mod.init_optimizer(kvstore=kv, optimizer=mx.optimizer.create('sgd', learning_rate=0.5))
metric = mx.metric.create('accuracy')
for epoch in range(3):
    batches.reset()
    metric.reset()
    for batch in batches:
        mod.prepare(batch, sparse_row_id_fn=lambda batch: {'weight': batch.data[0].indices})
        mod.forward_backward(batch)
        mod.update()
        mod.update_metric(metric, batch.label)
    print('epoch %d, accuracy = %s' % (epoch, metric.get()[1]), flush=True)
mod.save_checkpoint('sparse', 3)
"""
BUCKETS = """
import random
from mxnet import rnn
random.seed(7)
lines = [[random.randrange(1, 9) for _ in range(random.choice((4, 8)))] for _ in range(128)]
train = rnn.BucketSentenceIter(lines, 16, buckets=[4, 8], invalid_label=0)

def symbol(length):
    embedded = mx.sym.Embedding(mx.sym.var('data'), input_dim=9, output_dim=8, name='embed')
    out, _ = rnn.LSTMCell(8, prefix='lstm_').unroll(length, inputs=embedded, merge_outputs=True)
    out = mx.sym.FullyConnected(mx.sym.Reshape(out, shape=(-1, 8)), num_hidden=9, name='pred')
    label = mx.sym.Reshape(mx.sym.var('softmax_label'), shape=(-1,))
    return mx.sym.SoftmaxOutput(out, label), ('data',), ('softmax_label',)

model = mx.mod.BucketingModule(symbol, default_bucket_key=train.default_bucket_key)
model.fit(train, eval_metric=mx.metric.Perplexity(0), kvstore=mx.kv.create('dist_sync'), num_epoch=2,
          epoch_end_callback=mx.callback.do_checkpoint('lstm'))
"""
OPERATOR_OF_ITS_OWN = """
class Double(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2)

@mx.operator.register('double')
class DoubleProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Double()

store = mx.kvstore.create('dist_sync')
net = mx.sym.Custom(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2), op_type='double')
model = mx.mod.Module(mx.sym.SoftmaxOutput(net, name='softmax'))
model.fit(mx.io.NDArrayIter(x, y, 32), num_epoch=2, kvstore=store)
model.save_params('custom.params')
"""
SCRIPTS = {
    "a Module with a metric of its own": (MODULE_WITH_A_METRIC_OF_ITS_OWN, "out/model-0003.params"),
    "Gluon with a Trainer": (GLUON_WITH_A_TRAINER, "gluon-0000.params"),
    "sparse weights": (SPARSE_WEIGHTS, "sparse-0003.params"),
    "buckets of an RNN": (BUCKETS, "lstm-0002.params"),
    "an operator of its own": (OPERATOR_OF_ITS_OWN, "custom.params"),
}
"""Each script, and the model that it saves."""


@pytest.mark.parametrize("kind", SCRIPTS)
def test_an_old_script_trains_in_one_command_and_its_model_comes_home(local_cluster, tmp_path, kind):
    script, model = SCRIPTS[kind]
    (tmp_path / "train.py").write_text(DATA + script)
    environment = {"KUBECONFIG": str(local_cluster.kubeconfig)}
    command = ["run", str(tmp_path / "train.py"), "--workers", "2", "--output", str(tmp_path / "home")]

    done = local_cluster.mxjob(*command, "--report", str(tmp_path / "report.html"), environment=environment)

    assert done.returncode == 0, done.stderr
    assert any((tmp_path / "home" / f"worker-{index}" / model).exists() for index in (0, 1)), done.stderr
    assert "No figures" not in (tmp_path / "report.html").read_text()
    assert "reported no accuracy" not in (tmp_path / "report.html").read_text()
