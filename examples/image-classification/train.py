"""Image classification in the way of MXNet's example/image-classification/train_cifar10.py: a ResNet, by Module.fit.

It takes the arguments that the documents' manifests give to that script, and writes the same lines to its log. Its
images have CIFAR-10's form (3 x 32 x 32, ten classes) but can be had without a network: see `load_images`.
"""

import argparse
import json
import logging
import os
import sys
from pathlib import Path

IMAGES = 1797  # handwritten digits that come with scikit-learn
TEST_IMAGES = 360


def positive(text):
    """A whole number above zero."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return number


def epochs(text):
    """Numbers of epochs, each above the one before it, as MXNet's scheduler wants them; or nothing."""
    numbers = [0, *(positive(number) for number in text.split(",") if number)]
    if sorted(set(numbers)) != numbers:
        raise argparse.ArgumentTypeError(f"{text} must rise, as 6,8 does")
    return text


def read_options():
    """The command line, with the names of MXNet's common/fit.py; a wrong one ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        description="Train a ResNet on handwritten digits before photographs.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--num-epochs", type=positive, default=10)
    parser.add_argument(
        "--num-layers", type=positive, default=8, help="of the ResNet: 6 n + 2; less than 8 counts as 8"
    )
    parser.add_argument("--batch-size", type=positive, default=32, help="images per step and worker")
    parser.add_argument("--kv-store", default="device", help="local, device, dist_sync, dist_device_sync, dist_async")
    parser.add_argument("--gpus", help="numbers of the GPUs, as 0,2; without them the CPU is used", metavar="LIST")
    parser.add_argument("--lr", type=float, default=0.05, help="the first learning rate, of SGD with momentum 0.9")
    parser.add_argument(
        "--lr-factor", type=float, default=0.1, help="by which the rate falls at each of --lr-step-epochs"
    )
    parser.add_argument(
        "--lr-step-epochs", type=epochs, default="6,8", metavar="LIST", help="empty for a rate that stays"
    )
    parser.add_argument(
        "--num-examples",
        type=positive,
        default=IMAGES - TEST_IMAGES,
        help=f"images to train on, of all workers; there are {IMAGES - TEST_IMAGES}",
    )
    parser.add_argument("--disp-batches", type=positive, default=5, help="a line in the log for so many batches")
    parser.add_argument("--model-prefix", help="write a checkpoint after each epoch, under this name")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--result", type=Path, metavar="FILE", help="write the last figures here as JSON")
    options = parser.parse_args()
    if options.kv_store.startswith("dist") and "DMLC_ROLE" not in os.environ:
        parser.error(f"--kv-store {options.kv_store} needs DMLC_ROLE and its like, which a job sets; use local")
    workers = int(os.environ.get("DMLC_NUM_WORKER", "1")) if options.kv_store.startswith("dist") else 1
    images = min(options.num_examples, IMAGES - TEST_IMAGES)
    if options.batch_size * workers > images:
        parser.error(f"--batch-size {options.batch_size} is more than a worker's share of {images} images")
    return options


# Before MXNet, so that a wrong option ends all replicas at once; else servers would wait for workers that never come.
OPTIONS = read_options() if __name__ == "__main__" else None

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
import sklearn.datasets  # noqa: E402


def photographs():
    """The two colour photographs that come with scikit-learn, as (3, height, width) from 0 to 1."""
    folder = Path(sklearn.datasets.__file__).with_name("images")
    names = ("china.jpg", "flower.jpg")
    return [mx.image.imread(str(folder / name)).asnumpy().transpose(2, 0, 1).astype("float32") / 255 for name in names]


def load_images():
    """Images (N, 3, 32, 32) as float32 from 0 to 1, and their labels; the same for every worker.

    scikit-learn's 1,797 handwritten digits, four times as large, each in a colour of its own before a piece of a
    photograph (so was MNIST-M made of MNIST): real strokes, real texture, nothing to download.
    """
    digits = sklearn.datasets.load_digits()
    random = np.random.RandomState(0)
    pieces = photographs()
    images = np.empty((len(digits.images), 3, 32, 32), dtype="float32")
    for image, digit in zip(images, digits.images, strict=True):
        photograph = pieces[random.randint(len(pieces))]
        top, left = (random.randint(length - 32) for length in photograph.shape[1:])
        behind = photograph[:, top : top + 32, left : left + 32]
        colour = (behind.mean(axis=(1, 2)) + 0.5 + random.uniform(-0.15, 0.15, 3)) % 1
        strokes = np.kron(digit / 16, np.ones((4, 4)))
        image[:] = behind * (1 - strokes) + colour[:, None, None] * strokes
    order = random.permutation(len(images))
    return images[order], digits.target[order].astype("float32")


def iterators(options, rank, workers):
    """What one worker trains on, its share of the images, and what all test on."""
    images, labels = load_images()
    test = mx.io.NDArrayIter(images[-TEST_IMAGES:], labels[-TEST_IMAGES:], options.batch_size)
    count = min(options.num_examples, len(images) - TEST_IMAGES) // workers
    count -= count % options.batch_size  # in dist_sync all workers must make the same steps
    mine = slice(rank * count, (rank + 1) * count)
    train = mx.io.NDArrayIter(images[mine], labels[mine], options.batch_size, shuffle=True)
    return train, test, count // options.batch_size


def unit(data, name, filters, stride):
    """A residual unit: two convolutions, and a way around them."""
    body, around = data, data
    for number, step in ((1, stride), (2, (1, 1))):
        body = mx.sym.BatchNorm(body, fix_gamma=False, momentum=0.9, eps=2e-5, name=f"{name}_bn{number}")
        body = mx.sym.Activation(body, act_type="relu", name=f"{name}_relu{number}")
        if number == 1 and name.endswith("unit1"):
            around = mx.sym.Convolution(
                body, num_filter=filters, kernel=(1, 1), stride=stride, no_bias=True, name=f"{name}_sc"
            )
        body = mx.sym.Convolution(
            body, num_filter=filters, kernel=(3, 3), stride=step, pad=(1, 1), no_bias=True, name=f"{name}_conv{number}"
        )
    return body + around


def resnet(num_layers):
    """CIFAR-10's ResNet (He et al., 2016): three stages of 16, 32 and 64 filters, ten classes."""
    body = mx.sym.Convolution(
        mx.sym.var("data"), num_filter=16, kernel=(3, 3), stride=(1, 1), pad=(1, 1), no_bias=True, name="conv0"
    )
    for stage, filters in enumerate((16, 32, 64), start=1):
        for number in range(1, max((num_layers - 2) // 6, 1) + 1):
            stride = (2, 2) if stage > 1 and number == 1 else (1, 1)
            body = unit(body, f"stage{stage}_unit{number}", filters, stride)
    body = mx.sym.Activation(mx.sym.BatchNorm(body, fix_gamma=False, name="bn1"), act_type="relu", name="relu1")
    body = mx.sym.Flatten(mx.sym.Pooling(body, global_pool=True, kernel=(8, 8), pool_type="avg", name="pool1"))
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(body, num_hidden=10, name="fc1"), name="softmax")


def devices(options):
    """The GPUs that were asked for; where this MXNet can't use any, the CPU, and it says so."""
    if not options.gpus:
        return mx.cpu()
    if not mx.context.num_gpus():
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        logging.warning("This MXNet sees no GPU (CUDA_VISIBLE_DEVICES=%s): --gpus %s is the CPU", seen, options.gpus)
        return mx.cpu()
    return [mx.gpu(int(number)) for number in options.gpus.split(",")]


def schedule_of(options, steps):
    """The falls of the learning rate, after so many steps; None, and the rate stays, where there are none."""
    falls = [steps * int(epoch) for epoch in options.lr_step_epochs.split(",") if epoch]
    if not falls:
        return None
    return mx.lr_scheduler.MultiFactorScheduler(falls, factor=options.lr_factor, base_lr=options.lr)


def fit(options):
    """Train and test as MXNet's common/fit.py does; returns the last accuracy on the test images."""
    kv = mx.kvstore.create(options.kv_store)
    logging.info("Node[%d] start with arguments %s", kv.rank, options)
    mx.random.seed(options.seed)
    np.random.seed(options.seed)
    train, test, steps = iterators(options, kv.rank, kv.num_workers)
    schedule = schedule_of(options, steps)
    model = mx.mod.Module(resnet(options.num_layers), context=devices(options))
    saving = mx.callback.do_checkpoint(options.model_prefix) if options.model_prefix and kv.rank == 0 else None
    model.fit(
        train,
        eval_data=test,
        num_epoch=options.num_epochs,
        kvstore=kv,
        optimizer="sgd",
        optimizer_params={"learning_rate": options.lr, "momentum": 0.9, "wd": 1e-4, "lr_scheduler": schedule},
        initializer=mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2),
        eval_metric=["accuracy", "ce"],
        batch_end_callback=mx.callback.Speedometer(options.batch_size, options.disp_batches),
        epoch_end_callback=saving,
    )
    return dict(model.score(test, "accuracy"))["accuracy"]


def main():
    """Train, and write the result."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    accuracy = fit(OPTIONS)
    logging.info("Accuracy on the test images: %.4f after %d epochs", accuracy, OPTIONS.num_epochs)
    if OPTIONS.result:
        OPTIONS.result.write_text(json.dumps({"accuracy": round(float(accuracy), 4), "epochs": OPTIONS.num_epochs}))


if __name__ == "__main__":
    main()
