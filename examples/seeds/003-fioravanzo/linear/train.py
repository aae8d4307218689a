"""Fits a line to noisy points by linear regression on all workers of a job.

It stands for the example of StefanoFioravanzo/mx-operator, whose image is gone.
"""

import logging
import sys

import mxnet as mx
import numpy as np

SLOPES, START = (2.0, -3.4), 4.2
SAMPLES, BATCH, EPOCHS = 1024, 32, 10


def main():
    """Fit, and say what was found."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    kv = mx.kvstore.create("dist_sync")
    random = np.random.RandomState(kv.rank)
    x = random.normal(size=(SAMPLES // kv.num_workers, 2)).astype("float32")
    y = x @ np.array(SLOPES, "float32") + START + random.normal(scale=0.01, size=len(x)).astype("float32")
    line = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="line")
    model = mx.mod.Module(mx.sym.LinearRegressionOutput(line, mx.sym.var("y"), name="out"), label_names=["y"])
    model.fit(
        mx.io.NDArrayIter(x, y, BATCH, label_name="y"),
        num_epoch=EPOCHS,
        kvstore=kv,
        eval_metric="mse",
        optimizer="sgd",
        optimizer_params={"learning_rate": 0.05},
        batch_end_callback=mx.callback.Speedometer(BATCH, 10),
    )
    found = model.get_params()[0]
    slopes = ", ".join(f"{each:.2f}" for each in found["line_weight"].asnumpy().ravel())
    start = found["line_bias"].asscalar()
    logging.info("Worker %d of %d found: slopes %s, start %.2f", kv.rank, kv.num_workers, slopes, start)


if __name__ == "__main__":
    main()
