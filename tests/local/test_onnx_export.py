"""A trained model is exported to ONNX, in which onnxruntime computes the same."""

import json
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "onnx"
SCRIPT = """
import sys
import mxnet as mx
mx.random.seed(7)
x = mx.nd.random.uniform(-1, 1, shape=(64, 1, 8, 8))
net = mx.sym.Convolution(mx.sym.var('data'), kernel=(3, 3), num_filter=4)
net = mx.sym.FullyConnected(mx.sym.BatchNorm(net), num_hidden=50)
mod = mx.mod.Module(mx.sym.SoftmaxOutput(net, name='softmax'))
batches = mx.io.NDArrayIter(x, x[:, 0, 0, 0] > 0, 32)
mod.fit(batches, num_epoch=2, initializer=mx.init.Xavier(), epoch_end_callback=mx.callback.do_checkpoint(sys.argv[1]))
"""


def test_a_checkpoint_becomes_an_onnx_file_that_computes_the_same(local_cluster, tmp_path):
    environment = {"KUBECONFIG": str(local_cluster.kubeconfig)}
    models = ["--mount", f"{tmp_path}:/models"]
    (tmp_path / "train.py").write_text(SCRIPT)
    trained = local_cluster.mxjob(
        "run", str(tmp_path / "train.py"), *models, "--", "/models/net", environment=environment
    )
    assert trained.returncode == 0, trained.stderr

    (tmp_path / "net-1-0009.params").touch()  # of the worker of rank 1
    script = str(shutil.copytree(EXAMPLE, tmp_path / "onnx") / "export.py")
    export = ["/models/net", "32,1,8,8", "--output", "/models/net.onnx", "--tolerance"]
    done = local_cluster.mxjob("run", script, *models, "--", *export, "1e-4", environment=environment)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result == {
        "model": "/models/net.onnx",
        "epoch": 2,
        "largest_difference": result["largest_difference"],
    }
    assert 0 < result["largest_difference"] < 1e-4
    assert (tmp_path / "net.onnx").stat().st_size > 500

    refused = local_cluster.mxjob("run", script, *models, "--", *export, "0", environment=environment)
    assert refused.returncode == 1
    assert "differs from MXNet by" in refused.stderr
