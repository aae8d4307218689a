"""Trains a small convolutional network to read handwritten digits: MXNet 1.9.1 with Gluon, on one machine or many.

The data are the 1,797 images of 8 x 8 pixels that come with scikit-learn: 1,437 to train on, 360 to test. In a job,
every replica runs this same script; `import mxnet` turns schedulers and servers into what their DMLC_ROLE says
and never returns there, so what follows it runs in workers only.
"""

import argparse
import hashlib
import json
import logging
import math
import os
import sys
import time
from pathlib import Path

TRAIN_IMAGES, TEST_IMAGES = 1437, 360
KEPT_CHECKPOINTS = 3
RESULT_BYTES = 3500  # Kubernetes keeps 4,096 bytes of a termination message


def positive(text):
    """A whole number above zero, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} isn't above 0")
    return number


def rate(text):
    """A learning rate: a number above zero, for argparse."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{number} isn't above 0")
    return number


def read_options():
    """The command line; a wrong one ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        description="Train a small convolutional network on scikit-learn's handwritten digits with MXNet.",
        epilog="In an MXJob, use --kv-store dist_sync; the job sets the DMLC_* variables by which the processes find "
        "each other. On one machine without a job: python train.py",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--kv-store",
        choices=["local", "dist_sync"],
        default="local",
        help="where the weights live: in this process, or on the job's servers, all workers in step",
    )
    parser.add_argument("--epochs", type=positive, default=20, help="train up to this epoch, counting those resumed")
    parser.add_argument("--batch-size", type=positive, default=32, help="images per step and worker")
    parser.add_argument("--learning-rate", type=rate, default=0.004, help="Adam's step size")
    parser.add_argument("--seed", type=int, default=42, help="for the first weights and the order of the images")
    parser.add_argument(
        "--checkpoint-dir",
        type=Path,
        metavar="DIR",
        default=Path("checkpoints"),
        help="write a checkpoint here after each epoch, and start from the newest good one; on a volume, it "
        "outlives the pod. The worker of rank 0 decides; the others get the weights from the servers",
    )
    parser.add_argument(
        "--result",
        type=Path,
        metavar="FILE",
        help="write the final accuracy and the history here as JSON, below 3.5 kB; /dev/termination-log hands it "
        "to Kubernetes",
    )
    options = parser.parse_args()
    if options.kv_store != "local" and "DMLC_ROLE" not in os.environ:
        parser.error("--kv-store dist_sync needs DMLC_ROLE and its like, which a job sets; outside one, use local")
    workers = int(os.environ.get("DMLC_NUM_WORKER", "1")) if options.kv_store != "local" else 1
    if options.batch_size > TRAIN_IMAGES // workers:
        parser.error(f"--batch-size {options.batch_size} is more than a worker's share of {TRAIN_IMAGES} images")
    if options.result and not options.result.parent.is_dir():
        parser.error(f"--result {options.result}: there is no folder {options.result.parent}")
    return options


# Before MXNet, so that a wrong option ends all replicas at once; else servers would wait for workers that never come.
OPTIONS = read_options() if __name__ == "__main__" else None

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

AGREED_KEY = 1_000_000  # far from the trainer's keys, which number the weights from 0
HISTORY = ("train_accuracy", "validation_accuracy", "loss")


def network():
    """Two convolutions and two dense layers. Shapes are left open until the first batch (deferred initialisation)."""
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(32, kernel_size=3, padding=1, activation="relu"),
        gluon.nn.Conv2D(64, kernel_size=3, padding=1, activation="relu"),
        gluon.nn.MaxPool2D(pool_size=2),
        gluon.nn.Dropout(0.25),
        gluon.nn.Dense(128, activation="relu"),
        gluon.nn.Dropout(0.5),
        gluon.nn.Dense(10),
    )
    return net


def load_data():
    """Images (N, 1, 8, 8) as float32 from 0 to 1, and labels: train images, test images, train labels, test labels."""
    digits = load_digits()
    images = digits.images[:, np.newaxis].astype("float32") / 16
    labels = digits.target.astype("float32")
    return train_test_split(images, labels, test_size=TEST_IMAGES, stratify=labels, random_state=0)


def share(count, epoch, worker, workers, options):
    """The indices of the images that one worker sees in one epoch: (steps, batch size).

    All workers draw the same order and take turns in it. Each makes the same number of steps, because in dist_sync
    the others would wait for ever for a step that one of them doesn't make.
    """
    order = np.random.RandomState([options.seed % 2**32, epoch]).permutation(count)
    steps = count // workers // options.batch_size
    return order[worker::workers][: steps * options.batch_size].reshape(steps, options.batch_size)


def write_whole(path, data):
    """Write bytes so that a reader sees all of them or none."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def save_checkpoint(folder, epoch, net, history):
    """Weights first, then the description that makes them count; the oldest go."""
    weights = folder / f"digits-{epoch:04d}.params"
    temporary = folder / f"{weights.name}.tmp"
    net.save_parameters(str(temporary))
    digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
    temporary.replace(weights)
    description = {"epoch": epoch, "sha256": digest, "history": history}
    write_whole(weights.with_suffix(".json"), json.dumps(description).encode())
    for old in sorted(folder.glob("digits-*.json"))[:-KEPT_CHECKPOINTS]:
        old.unlink()
        old.with_suffix(".params").unlink(missing_ok=True)


def check(weights, digest):
    """Refuse a file that isn't what was written."""
    if hashlib.sha256(weights.read_bytes()).hexdigest() != digest:
        raise ValueError(f"{weights.name} isn't what was written")


def load_checkpoint(folder, net):
    """Load the newest checkpoint that is whole: (number of epochs done, history), or (0, empty) if there is none."""
    for path in sorted(folder.glob("digits-*.json"), reverse=True):
        try:
            description = json.loads(path.read_bytes())
            epochs, history = (
                int(description["epoch"]) + 1,
                {name: list(description["history"][name]) for name in HISTORY},
            )
            weights = path.with_suffix(".params")
            check(weights, description["sha256"])
            net.load_parameters(str(weights))
        except (OSError, ValueError, KeyError, TypeError, AssertionError, mx.MXNetError) as error:
            logging.warning("Checkpoint %s can't be used (%s); trying the one before it", path, error)
            continue
        logging.info("Resumed from checkpoint %s: %d epochs are done", path, epochs)
        return epochs, history
    return 0, {name: [] for name in HISTORY}


def agree(kv, done, history, epochs):
    """What the worker of rank 0 has: the others may not see its disk, and all must make the same steps.

    A store keeps the first value of a key that rank 0 brings. The weights travel the same way, in the first step.
    """
    points = [history[name][-epochs:] for name in HISTORY]
    value = np.full((1 + len(HISTORY), epochs), np.nan, dtype="float32")
    value[0, 0] = done
    for row, known in zip(value[1:], points, strict=True):
        row[: len(known)] = known
    value = mx.nd.array(value)
    kv.init(AGREED_KEY, value)
    kv.pull(AGREED_KEY, out=value)
    value = value.asnumpy()
    known = [[round(float(x), 4) for x in row if not np.isnan(x)] for row in value[1:]]
    return int(value[0, 0]), dict(zip(HISTORY, known, strict=True))


def accuracy(net, images, labels):
    """The share of images that the network reads right."""
    return float((net(images).argmax(axis=1) == labels).mean().asscalar())


def write_result(path, result):
    """Write JSON that fits a termination message; a long history is thinned, its last point kept.

    In place: in a pod, /dev/termination-log is a mounted file, which can't be replaced.
    """
    step, thinned = 1, result
    while len(data := json.dumps(thinned).encode()) > RESULT_BYTES:
        step += 1
        thinned = {**result, **{name: result[name][::-step][::-1] for name in HISTORY}, "every": step}
    path.write_bytes(data)


def train(options):
    """Train, test after each epoch, and return the result."""
    started = time.time()
    mx.random.seed(options.seed)
    options.checkpoint_dir.mkdir(parents=True, exist_ok=True)  # fails, if it must, before the others count on us
    kv = mx.kv.create(options.kv_store)
    train_images, test_images, train_labels, test_labels = load_data()
    logging.info(
        "Worker of rank %d of %d, kv-store %s, seed %d, %d images to train on, %d to test",
        *(kv.rank, kv.num_workers, options.kv_store, options.seed, len(train_images), len(test_images)),
    )
    test_images, test_labels = mx.nd.array(test_images), mx.nd.array(test_labels)

    net = network()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    done, history = load_checkpoint(options.checkpoint_dir, net)
    if kv.num_workers > 1:
        done, history = agree(kv, done, history, options.epochs)
    # The servers hold the optimizer. Its moments aren't in the checkpoint: with servers, Trainer.save_states can't
    # fetch them. They are rebuilt within an epoch, and the learning rate goes on from where it was.
    steps = TRAIN_IMAGES // kv.num_workers // options.batch_size
    rate_now = options.learning_rate * (1 + math.cos(math.pi * min(done / options.epochs, 1))) / 2
    schedule = mx.lr_scheduler.CosineScheduler(max(options.epochs - done, 1) * steps, base_lr=rate_now)
    optimizer = mx.optimizer.Adam(learning_rate=rate_now, lr_scheduler=schedule)
    trainer = gluon.Trainer(net.collect_params(), optimizer, kvstore=kv)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    speedometer = mx.callback.Speedometer(options.batch_size, frequent=10)

    for epoch in range(done, options.epochs):
        tic = time.time()
        metric, loss_sum = mx.metric.Accuracy(), 0.0
        batches = share(len(train_images), epoch, kv.rank, kv.num_workers, options)
        for number, indices in enumerate(batches):
            images, labels = mx.nd.array(train_images[indices]), mx.nd.array(train_labels[indices])
            with autograd.record():
                output = net(images)
                loss = loss_of(output, labels)
            loss.backward()
            trainer.step(options.batch_size * kv.num_workers)
            metric.update([labels], [output])
            loss_sum += float(loss.mean().asscalar())
            speedometer(mx.model.BatchEndParam(epoch, number, metric, None))
        point = (metric.get_global()[1], accuracy(net, test_images, test_labels), loss_sum / len(batches))
        for name, value in zip(HISTORY, point, strict=True):
            history[name].append(round(value, 4))
        logging.info("Epoch[%d] Train-accuracy=%f", epoch, point[0])
        logging.info("Epoch[%d] Train-cross-entropy=%f", epoch, point[2])
        logging.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - tic)
        logging.info("Epoch[%d] Validation-accuracy=%f", epoch, point[1])
        if kv.rank == 0:
            save_checkpoint(options.checkpoint_dir, epoch, net, history)
    if done >= options.epochs:
        logging.info("Nothing left to train: %d epochs are done, --epochs is %d", done, options.epochs)

    return {
        "accuracy": history["validation_accuracy"][-1],
        "epochs": max(done, options.epochs),
        **history,
        "seconds": round(time.time() - started, 1),
    }


def main():
    """Train, and write the result."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    result = train(OPTIONS)
    logging.info("Accuracy on the test images: %.4f after %d epochs", result["accuracy"], result["epochs"])
    if OPTIONS.result:
        write_result(OPTIONS.result, result)


if __name__ == "__main__":
    main()
