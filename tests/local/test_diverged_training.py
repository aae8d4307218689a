"""Real MXNet whose weights overflow: the job fails at the first epoch with a figure that is no number, and names it."""

import pytest

from mxnet_operator.api.conditions import terminal_message

SCRIPT = """
import logging
import mxnet as mx
logging.basicConfig(level=logging.INFO)
x = mx.nd.random.uniform(-1, 1, shape=(256, 4))
net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=1), mx.sym.var('label'))
mod = mx.mod.Module(net, label_names=['label'])
mod.fit(mx.io.NDArrayIter(x, x[:, 0], 32, label_name='label'), num_epoch=100, kvstore=mx.kv.create('dist_sync'),
        eval_metric='mse', optimizer_params={'learning_rate': 1e20})
"""


@pytest.mark.exhaustive
def test_the_job_fails_with_the_line_that_shows_it(local_cluster, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    command = ["run", str(tmp_path / "train.py"), "--name", "diverges", "--workers", "2", "--fail-on-divergence"]
    done = local_cluster.mxjob(*command, environment={"KUBECONFIG": str(local_cluster.kubeconfig)})
    assert done.returncode == 1
    message = terminal_message(local_cluster.wait_for("diverges", "Failed"))
    assert "exited with code 65" in message
    assert "mxjob: the training has diverged: INFO:root:Epoch[0] Train-mse=nan" in message
    assert "Epoch[1]" not in done.stdout
