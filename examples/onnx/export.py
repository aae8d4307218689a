"""Export a checkpoint of MXNet 1.x to ONNX, and compare what both compute.

The checkpoint is what Module's `do_checkpoint` and Gluon's `net.export` save: PREFIX-symbol.json, PREFIX-0010.params.
Without an epoch the newest is taken. The exit code is 0 only if the outputs agree within the tolerance.
"""

import argparse
import json
import re
import sys
from pathlib import Path


def read_options():
    """The command line; a wrong one ends the process with exit code 2."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", help="path of the checkpoint, without -symbol.json")
    parser.add_argument("shape", help="shape of an input batch, such as 64,1,28,28; the first number is left open")
    parser.add_argument("--epoch", type=int, help="default: the newest")
    parser.add_argument("--batch", type=Path, metavar="FILE", help="validation batch (numpy.save); default: random")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="largest difference of any output")
    parser.add_argument("--output", type=Path, default=Path("model.onnx"))
    parser.add_argument("--result", type=Path, metavar="FILE", help="write the result as JSON, /dev/termination-log")
    options = parser.parse_args()
    if not re.fullmatch(r"\d+(,\d+)*", options.shape):
        parser.error(f"{options.shape} is no shape such as 64,1,28,28")
    options.shape = tuple(map(int, options.shape.split(",")))
    prefix = Path(options.prefix)
    named = re.compile(re.escape(prefix.name) + r"-(\d+)\.params")
    found = filter(None, (named.fullmatch(each.name) for each in prefix.parent.glob("*.params")))
    if options.epoch is None:
        options.epoch = max((int(each[1]) for each in found), default=None)
    if options.epoch is None or not Path(f"{prefix}-symbol.json").is_file():
        parser.error(f"{prefix}: there is no {prefix}-symbol.json with a {prefix}-NNNN.params")
    return options


OPTIONS = read_options() if __name__ == "__main__" else None

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402


def without_loss(symbol):
    """The symbol's outputs as they are for prediction: MXNet's exporter doesn't know the labels of its loss layers."""
    nodes = json.loads(symbol.tojson())
    operator = nodes["nodes"][nodes["heads"][0][0]]["op"]
    if operator == "SoftmaxOutput":
        return mx.sym.softmax(symbol.get_children()[0])
    if operator == "LogisticRegressionOutput":
        return mx.sym.sigmoid(symbol.get_children()[0])
    return symbol.get_children()[0] if operator.endswith("RegressionOutput") else symbol


def with_defaults(symbol, weights):
    """The same model with two defaults written out, which MXNet's exporter takes for their opposites."""
    graph, weights = json.loads(symbol.tojson()), dict(weights)
    for node in graph["nodes"]:
        given = node.setdefault("attrs", {})
        if node["op"] == "FullyConnected":
            given.setdefault("flatten", "True")
        if node["op"] == "BatchNorm" and given.get("fix_gamma", "True") in ("True", "1"):
            gamma = graph["nodes"][node["inputs"][1][0]]["name"]
            weights[gamma] = mx.nd.ones_like(weights[gamma])
    return mx.sym.load_json(json.dumps(graph)), weights


def export(options, symbol, weights):
    """Write the ONNX file; its weights are constants, which runtimes fold."""
    path = str(options.output)
    rest = options.shape[1:]
    mx.onnx.export_model(
        symbol, weights, [options.shape], [np.float32], path, dynamic=True, dynamic_input_shapes=[(None, *rest)]
    )
    model = onnx.load(path)
    constants = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    onnx.save(model, path)


def outputs_of_mxnet(symbol, weights, batch):
    """What MXNet computes for the batch: one array for each output."""
    (name,) = [each for each in symbol.list_inputs() if each not in weights]
    bound = symbol.bind(
        mx.cpu(),
        {name: mx.nd.array(batch), **weights},
        grad_req="null",
        aux_states={each: weights[each] for each in symbol.list_auxiliary_states()},
    )
    return [each.asnumpy() for each in bound.forward(is_train=False)]


def outputs_of_onnx(path, batch):
    """What onnxruntime computes for the batch: one array for each output."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: batch})


def main():
    """Export, compare, and write the result."""
    symbol, arguments, states = mx.model.load_checkpoint(OPTIONS.prefix, OPTIONS.epoch)
    symbol, weights = with_defaults(without_loss(symbol), {**arguments, **states})
    export(OPTIONS, symbol, weights)
    batch = np.load(OPTIONS.batch) if OPTIONS.batch else np.random.RandomState(0).rand(*OPTIONS.shape)
    batch = batch.astype("float32")
    pairs = zip(outputs_of_mxnet(symbol, weights, batch), outputs_of_onnx(OPTIONS.output, batch), strict=True)
    difference = max(float(np.abs(mine - others).max()) for mine, others in pairs)
    result = {"model": str(OPTIONS.output), "epoch": OPTIONS.epoch, "largest_difference": difference}
    print(json.dumps(result), flush=True)
    if OPTIONS.result:
        OPTIONS.result.write_text(json.dumps(result))
    if not difference <= OPTIONS.tolerance:
        sys.exit(f"{OPTIONS.output} differs from MXNet by {difference}, more than {OPTIONS.tolerance}")


if __name__ == "__main__":
    main()
