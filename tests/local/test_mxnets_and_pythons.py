"""MXNet and Python of other years: two workers train over ps-lite, are killed and go on, fail, stall and diverge."""

import asyncio
import os

import pytest
from jobs import gang_job

from mxnet_operator.api.conditions import terminal_message
from mxnet_operator.client import MXJobClient
from mxnet_operator.local.images.day import DayImage, can_be_fetched
from mxnet_operator.local.images.environment import installed_interpreter

IMAGES = (
    "1.1.0-py3.6",
    "1.3.1-py3.6",
    "1.5.1-py2.7",
    "1.5.1-py3.7",
    "1.6.0-py3.8",
    "1.7.0-py3.8",
    "1.9.1-py3.8",
    "1.9.1-py3.11",
)

SCRIPT = """
import argparse, json, logging, os, signal, sys, time
import mxnet as mx
logging.basicConfig(level=logging.INFO)
parser = argparse.ArgumentParser()
parser.add_argument('--model-prefix')
parser.add_argument('--load-epoch', type=int)
parser.add_argument('--fault', default='')
parser.add_argument('--result')
args = parser.parse_args()

x = mx.nd.random.uniform(-1, 1, shape=(256, 4))
kv = mx.kv.create('dist_sync')
weights, begin = None, args.load_epoch or 0
prefix = args.model_prefix and args.model_prefix + ('-%d' % kv.rank if kv.rank else '')
if begin:
    _, weights, _ = mx.model.load_checkpoint(prefix, begin)

def after_epoch(epoch, *state):
    if prefix:
        mx.callback.do_checkpoint(prefix)(epoch, *state)
    if epoch == 2 and not begin and kv.rank == 0:
        if args.fault == 'killed':
            os.kill(os.getpid(), signal.SIGKILL)
        elif args.fault == 'raises':
            raise RuntimeError('no such thing')
        elif args.fault == 'stalls':
            time.sleep(10000)
        elif args.fault == 'diverges':
            print('Epoch[2] loss=nan')

net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var('data'), num_hidden=2), name='softmax')
mod = mx.mod.Module(net, context=mx.gpu(0) if 'MXJOB_GPU' in os.environ else mx.cpu())
mod.fit(mx.io.NDArrayIter(x, x[:, 0] > 0, 32), num_epoch=5, begin_epoch=begin, arg_params=weights, kvstore=kv,
        initializer=mx.init.One(), optimizer_params={'learning_rate': 0.5}, epoch_end_callback=after_epoch)
if args.result:
    with open(args.result, 'w') as result:
        json.dump({'weights': list(mod.get_params()[0]['fullyconnected0_weight'].shape)}, result)
print('trained with MXNet %s on Python %d.%d' % ((mx.__version__,) + sys.version_info[:2]))
"""
FAULTS = {
    "raises": ("exited with code 1", "RuntimeError: no such thing"),
    "stalls": ("exited with code 138", "mxjob: stalled for 4 s"),
    "diverges": ("exited with code 65", "mxjob: the training has diverged: Epoch[2] loss=nan"),
}


@pytest.fixture(params=IMAGES)
def image(request, image_store):
    """An image whose Python this machine has, or uv downloads."""
    found = DayImage.parse(f"mxjob/mxnet:{request.param}")
    assert found is not None
    if installed_interpreter(found.python) is None and not (os.environ.get("CI") or can_be_fetched(found.python)):
        pytest.skip(f"Python {found.python} isn't on this machine")
    asyncio.run(image_store.ensure(image_store.resolve(found.name)))
    return found


@pytest.mark.exhaustive
def test_a_gang_trains_goes_on_after_a_kill_and_says_why_it_fails(local_cluster, tmp_path, image):
    name = f"mxnet-{image.mxnet}-{image.python}".replace(".", "-")
    (tmp_path / "models").mkdir()
    (tmp_path / "train.py").write_text(SCRIPT)
    command = ["run", str(tmp_path / "train.py"), "--name", name, "--workers", "2", "--servers", "1", "--resume"]
    chosen = ["--env", "MXJOB_GPU=cpu", "--mxnet", image.mxnet, "--python", image.python, "--as-of", str(image.day)]
    mount = ["--mount", f"{tmp_path}/models:/models", "--report", str(tmp_path / "report.html")]
    script = ["--", "--model-prefix", "/models/net", "--fault", "killed", "--result", "/dev/termination-log"]
    environment = {"KUBECONFIG": str(local_cluster.kubeconfig)}
    done = local_cluster.mxjob(*command, *chosen, *mount, *script, environment=environment)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{image}\n" in done.stderr
    assert "exited with code 137" in done.stderr
    first, second = done.stdout.split("mxjob: attempt 1 goes on after epoch 3, from ")
    assert "Epoch[2] Train-accuracy" in first
    assert "Epoch[2]" not in second
    assert f"trained with MXNet {image.mxnet} on Python {image.python}" in second
    with MXJobClient(kubeconfig=local_cluster.kubeconfig, namespace="default") as client:
        assert client.result(name)["weights"] == [2, 4]
    assert "training accuracy" in (tmp_path / "report.html").read_text()

    for fault in FAULTS:
        words = ["python", "-c", SCRIPT, "--fault", fault]
        job = gang_job(f"{name}-{fault}", image.name, words)
        job["spec"]["runPolicy"] = {"stallTimeoutSeconds": 4, "failOnDivergence": True}
        local_cluster.create(job)
    for fault, says in FAULTS.items():
        message = terminal_message(local_cluster.wait_for(f"{name}-{fault}", "Failed"))
        assert all(each in message for each in says), message
