"""Trains a perceptron on handwritten digits, with the command line and the log of MXNet's train_mnist.py.

It stands for train_mnist.py and train_cifar10.py in the images of the documents, which can't be had any more, and ends
in seconds. The images are scikit-learn's: nothing is downloaded.
"""

import argparse
import logging
import os
import sys

TEST_IMAGES = 360


def read_options():
    """The command line, with the names of MXNet's common/fit.py; a wrong one ends the process with exit code 2."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--num-epochs", type=int, default=10)
    parser.add_argument("--num-layers", type=int, default=2, help="hidden layers")
    parser.add_argument("--batch-size", type=int, default=32, help="images per step and worker")
    parser.add_argument("--kv-store", default="device", help="local, device, dist_sync, dist_device_sync")
    parser.add_argument("--gpus", help="numbers of the GPUs, as 0,2; without them the CPU is used", metavar="LIST")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--disp-batches", type=int, default=5, help="a line in the log for so many batches")
    parser.add_argument("--model-prefix", help="write a checkpoint after each epoch, under this name")
    return parser.parse_args()


# Before MXNet, whose import never returns in a scheduler or server: a wrong option ends all replicas at once.
OPTIONS = read_options()

import mxnet as mx  # noqa: E402
import sklearn.datasets  # noqa: E402


def devices():
    """The GPUs that were asked for; where this MXNet can't use any, the CPU, and it says so."""
    if not OPTIONS.gpus:
        return mx.cpu()
    if not mx.context.num_gpus():
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        logging.warning("This MXNet sees no GPU (CUDA_VISIBLE_DEVICES=%s): --gpus %s is the CPU", seen, OPTIONS.gpus)
        return mx.cpu()
    return [mx.gpu(int(number)) for number in OPTIONS.gpus.split(",")]


def iterators(kv):
    """This worker's share of the images, equally many for each, and those that all test on."""
    digits = sklearn.datasets.load_digits()
    images, labels = digits.images.astype("float32") / 16, digits.target.astype("float32")
    size = OPTIONS.batch_size
    count = (len(images) - TEST_IMAGES) // kv.num_workers // size * size
    mine = slice(kv.rank * count, (kv.rank + 1) * count)
    test = mx.io.NDArrayIter(images[-TEST_IMAGES:], labels[-TEST_IMAGES:], size)
    return mx.io.NDArrayIter(images[mine], labels[mine], size, shuffle=True), test


def perceptron():
    """Hidden layers of 64, and ten classes."""
    body = mx.sym.Flatten(mx.sym.var("data"))
    for number in range(1, OPTIONS.num_layers + 1):
        body = mx.sym.Activation(mx.sym.FullyConnected(body, num_hidden=64, name=f"fc{number}"), act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(body, num_hidden=10, name="last"), name="softmax")


def main():
    """Train and test as MXNet's common/fit.py does."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    kv = mx.kvstore.create(OPTIONS.kv_store)
    logging.info("Node[%d] start with arguments %s", kv.rank, OPTIONS)
    mx.random.seed(1)
    train, test = iterators(kv)
    model = mx.mod.Module(perceptron(), context=devices())
    prefix = OPTIONS.model_prefix if kv.rank == 0 else f"{OPTIONS.model_prefix}-{kv.rank}"
    model.fit(
        train,
        eval_data=test,
        num_epoch=OPTIONS.num_epochs,
        kvstore=kv,
        optimizer="sgd",
        optimizer_params={"learning_rate": OPTIONS.lr, "momentum": 0.9},
        initializer=mx.init.Xavier(),
        batch_end_callback=mx.callback.Speedometer(OPTIONS.batch_size, OPTIONS.disp_batches),
        epoch_end_callback=mx.callback.do_checkpoint(prefix) if OPTIONS.model_prefix else None,
    )
    accuracy = dict(model.score(test, "accuracy"))["accuracy"]
    logging.info("Accuracy on the test images: %.4f after %d epochs", accuracy, OPTIONS.num_epochs)


if __name__ == "__main__":
    main()
