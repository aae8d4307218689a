"""Fits a plane to points with MXNet over ps-lite, and has a fault where the failure matrix asks for one.

FAULT says what happens, FAULT_AT where (start, middle, end), FAULT_IN to which replica (`worker-0`). `outside` is a
fault that the test brings about itself: a file `reached` tells it when, and the job stays there. It strikes once: a
file `struck` is there afterwards. Both lie in the folder SHARED, with the checkpoints. Schedulers and servers run this
file only up to `import mxnet`, so they have the start alone.
"""

import ctypes
import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path

EPOCHS, STEPS, BATCH = 4, 4, 8
SHARED = Path(os.environ["SHARED"])
STRUCK, REACHED = SHARED / "struck", SHARED / "reached"
FAULT, PLACE, VICTIM = (os.environ.get(name, "") for name in ("FAULT", "FAULT_AT", "FAULT_IN"))
REPLICA = "-".join(os.environ["HOSTNAME"].rsplit("-", 2)[-2:])
ARMED = bool(FAULT) and not STRUCK.exists()


class Lost(Exception):  # noqa: N818 - the name is what a log shows
    """The fault `exception`."""


def fail():
    raise Lost("the disk is gone")


def fail_in_a_thread(wait):
    """A loader that fails; a script that waits for what it loads waits for ever."""
    loaded = queue.Queue()
    loader = threading.Thread(target=fail)
    loader.start()
    if wait:
        loaded.get()
    loader.join()


def hang():
    threading.Event().wait()


FAULTS = {
    "exception": fail,
    "sys.exit": lambda: sys.exit(3),
    "sys.exit(0)": lambda: sys.exit(0),
    "os._exit": lambda: os._exit(5),
    "os._exit(0)": lambda: os._exit(0),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "segfault": lambda: ctypes.string_at(0),
    "thread": lambda: fail_in_a_thread(wait=False),
    "awaited thread": lambda: fail_in_a_thread(wait=True),
    "hang": hang,
}


def fault_at(place):
    """The fault, if it is to be here."""
    if ARMED and (place, REPLICA) == (PLACE, VICTIM) and FAULT in FAULTS:
        print("fault:", FAULT, flush=True)
        STRUCK.write_text(str(time.time()))
        FAULTS[FAULT]()


def awaited(place):
    """Whether the fault comes from outside, here."""
    return ARMED and FAULT == "outside" and place == PLACE


fault_at("start")
if awaited("start") and REPLICA == VICTIM:
    REACHED.touch()
    hang()

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
from mxnet import autograd, gluon  # noqa: E402


def batch(epoch, step, worker):
    """Points of the plane: (inputs, values)."""
    random = np.random.RandomState([epoch, step, worker])
    inputs = random.rand(BATCH, 3).astype("float32")
    return mx.nd.array(inputs), mx.nd.array(inputs @ np.array([1.0, -2.0, 3.0], dtype="float32"))


def save(net, epochs):
    """A checkpoint that is there as a whole or not at all."""
    net.save_parameters(str(SHARED / "new"))
    (SHARED / "new").rename(SHARED / f"{epochs}.params")


def main():
    net = gluon.nn.Dense(1, use_bias=False)
    net.initialize(mx.init.Zero())
    done = len(list(SHARED.glob("*.params")))
    if done:
        net.load_parameters(str(SHARED / f"{done}.params"))
    print("epochs done:", done, flush=True)
    kv = mx.kv.create("dist_sync")
    # Plain SGD keeps nothing between steps: a run that resumes from an epoch's weights ends with the same ones.
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=kv)

    def train(epoch, step, weight, place=""):
        inputs, values = batch(epoch, step, kv.rank)
        with autograd.record():
            loss = weight * ((net(inputs)[:, 0] - values) ** 2)
        loss.backward()
        fault_at(place)
        trainer.step(BATCH * kv.num_workers)
        mx.nd.waitall()

    for epoch in range(done, EPOCHS):
        for step in range(STEPS):
            middle = "middle" if (epoch, step) == (1, 2) else ""
            while middle and awaited(middle):  # steps that change nothing, until the fault comes
                train(epoch, step, 0.0)
                REACHED.touch()
            train(epoch, step, 1.0, middle)
        if kv.rank == 0:
            save(net, epoch + 1)
    weights = [round(float(each), 5) for each in net.weight.data().asnumpy().ravel()]
    fault_at("end")
    if awaited("end") and REPLICA == "worker-0":  # the other one is in MXNet's exit barrier by now, or soon
        REACHED.touch()
        hang()
    Path(os.environ["RESULT"]).write_text(json.dumps({"resumed": done, "weights": weights}))


main()
