"""Tunes a matrix multiplication with TVM's MetaSchedule on the RPC servers of an MXJob, and says what it gained.

An ordinary TVM script: where the tracker is and which key the servers have it takes from the variables that TVM's own
classes look for (TVM_TRACKER_HOST, TVM_TRACKER_PORT, TVM_TRACKER_KEY); `start.py` sets them from MX_CONFIG.

Options that the command line doesn't give come from the variables that Airflow's MXNetTuneOperator sets: MXTUNE_TRIALS,
MXTUNE_TARGET, MXTUNE_DATABASE_URI and MXTUNE_WARM_START. One that this script can't follow ends it at once.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import time
import types
from pathlib import Path

RESULT_BYTES = 3500  # Kubernetes keeps 4096 bytes of a termination message
REPEAT = 30  # short timings of which the least counts: other programs on the machine only ever add to a time
TURNS = 3  # in which before and after are measured one after the other
WORK_DIR = "tuning"
DATABASE = ("database_workload.json", "database_tuning_record.json")  # as MetaSchedule calls them, in the work folder
NOT_HERE = ("MODEL_URI", "TUNER", "EARLY_STOPPING")
TOLERANCE = 1e-3  # relative, of float32 sums that are added up in another order


def positive(text):
    """A whole number above zero."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return number


def cpu(text):
    """A target of TVM's: a kind, or JSON with its options, as TVM takes it; one core if it doesn't say how many."""
    try:
        target = json.loads(text) if text.startswith("{") else {"kind": text}
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is not JSON: {error}") from error
    if target.get("kind") != "llvm":
        raise argparse.ArgumentTypeError(
            f"{text} is not for a CPU; write llvm, or with options {json.dumps({'kind': 'llvm', 'mcpu': 'skylake'})}"
        )
    return {"num-cores": 1, **target}


def folder(text):
    """A path, or a URI file:///..."""
    scheme, found, path = text.partition("://")
    if found and scheme != "file":
        raise argparse.ArgumentTypeError(
            f"{text} is no folder; mount what is to be kept as a volume, and name its path"
        )
    return Path(path if found else text)


def switch(text):
    """1 or 0."""
    if text not in ("0", "1"):
        raise argparse.ArgumentTypeError(f"{text} is neither 1 nor 0")
    return text == "1"


def given(name, otherwise):
    """What the variable MXTUNE_<name> says; an option reads it as if it stood on the command line."""
    return os.environ.get(f"MXTUNE_{name}") or otherwise


def read_options():
    """The command line and the environment; a mistake in them ends the process with exit code 2."""
    parser = argparse.ArgumentParser(
        description="Tune a matrix multiplication of two square float32 matrices for one CPU core.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--size", type=positive, default=128, help="rows and columns of each matrix")
    parser.add_argument("--trials", type=positive, default=given("TRIALS", "16"), help="how many to measure")
    parser.add_argument("--target", type=cpu, default=given("TARGET", "llvm"), help="the CPU to compile for")
    parser.add_argument("--round", type=positive, default=8, help="how many of them to compile before measuring them")
    parser.add_argument("--seed", type=int, default=1, help="for the choice of the schedules")
    parser.add_argument("--wait", type=positive, default=60, metavar="SECONDS", help="how long to wait for servers")
    parser.add_argument("--timeout", type=positive, default=60, metavar="SECONDS", help="for one measurement")
    parser.add_argument(
        "--work-dir",
        type=folder,
        metavar="DIR",
        default=given("DATABASE_URI", WORK_DIR),
        help="for TVM's database and the tuned program; on a volume they outlive the job",
    )
    parser.add_argument(
        "--warm-start",
        type=switch,
        metavar="1|0",
        default=given("WARM_START", "1"),
        help="whether what the database has already counts, too",
    )
    parser.add_argument("--result", type=Path, metavar="FILE", help="write times and trials here as JSON")
    for name in NOT_HERE:
        if value := given(name, ""):
            parser.error(
                f"MXTUNE_{name} is {value}, and this example has no such choice: it tunes one matrix multiplication "
                "by random schedules, as many as --trials says. Leave it away, or bring a script of your own."
            )
    return parser.parse_args()


def why_none(trials, failures):
    """Why nothing was measured: what became of the last trial, or of the last candidate that couldn't be compiled."""
    if trials:
        return f"None of {len(trials)} trials could be measured; the last: {trials[-1][1]}"
    if failures:
        return f"None of {len(failures)} candidates could be compiled; the last: {failures[-1]}"
    return "TVM found no candidate to measure; the logs in the work folder may say why"


def as_text(result):
    """The result as JSON that Kubernetes keeps whole: with fewer and fewer trials, at last without the servers."""
    while len(text := json.dumps(result)) > RESULT_BYTES:
        if result["trials_ms"]:
            result = result | {name: result[name][1::2] for name in ("trials_ms", "trials_on")}
        elif "servers" in result:
            result = {name: value for name, value in result.items() if name != "servers"}
        else:
            break
    return text


# Before TVM, so that a wrong option ends the job at once.
OPTIONS = read_options() if __name__ == "__main__" else None

import numpy as np  # noqa: E402
import tvm  # noqa: E402
from tvm import te  # noqa: E402
from tvm.ir.utils import derived_object  # noqa: E402
from tvm.s_tir import meta_schedule as ms  # noqa: E402
from tvm.support import tar  # noqa: E402
from tvm.support.popen_pool import PopenPoolExecutor  # noqa: E402

# MetaSchedule imports the tensor instructions of every accelerator that TVM knows, which takes 15 s or more. Schedules
# for a plain CPU use none of them; to tune for anything else, remove this line.
sys.modules["tvm.s_tir.tensor_intrin"] = types.ModuleType("tvm.s_tir.tensor_intrin")


def multiplication(size):
    """C = A @ B as TVM takes it, without a schedule: three plain loops."""
    left = te.placeholder((size, size), name="A")
    right = te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), name="k")
    product = te.compute((size, size), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="C")
    return tvm.IRModule({"main": te.create_prim_func([left, right, product])})


def compiled(program, target, path):
    """Compile to object code, which the servers link; returns the path as text."""
    tvm.compile(program, target=target).export_library(str(path), fcompile=tar.tar)
    return str(path)


def measure(config, path, size):
    """Let a server that is free run compiled code; returns seconds per run, the largest relative error, the server.

    Runs in a process of its own, which the pool ends when no server answers.
    """
    session = config.connect_server()
    session.upload(path)
    module, device = session.load_module(os.path.basename(path)), session.cpu()  # noqa: PTH119 - the name on the server
    random = np.random.default_rng(0)
    left, right = (random.random((size, size), dtype="float32") for _ in range(2))
    arguments = [tvm.runtime.tensor(each, device) for each in (left, right, np.zeros_like(left))]
    module["main"](*arguments)
    expected = left @ right
    error = float(np.max(np.abs(arguments[2].numpy() - expected) / expected))
    timed = module.time_evaluator("main", device, number=1, repeat=REPEAT, min_repeat_ms=2)(*arguments)
    return float(timed.min), error, session.get_function("example.server_name")()


@derived_object
class Builder(ms.builder.PyBuilder):
    """Compiles candidates in this process: for one loop nest that is faster than to start others."""

    def __init__(self):
        super().__init__()
        self.failures = []  # why candidates couldn't be compiled

    def build(self, build_inputs):
        """Called by MetaSchedule with a round of candidates."""
        return [self.build_one(each) for each in build_inputs]

    def build_one(self, candidate):
        """One candidate, or why it can't be compiled."""
        try:  # in a folder of its own, which MetaSchedule removes
            path = compiled(candidate.mod, candidate.target, Path(tempfile.mkdtemp(), "candidate.tar"))
        except Exception as error:
            self.failures.append(str(error))
            return ms.builder.BuilderResult(None, f"can't be compiled: {error}")
        return ms.builder.BuilderResult(path, None)


@derived_object
class Measurement(ms.runner.PyRunnerFuture):
    """A candidate on its way through a server."""

    def __init__(self, future, trials):
        super().__init__()
        self.future = future
        self.trials = trials

    def done(self):
        """Asked by MetaSchedule now and then."""
        return self.future.done()

    def result(self):
        """Called by MetaSchedule once, in the order of the candidates."""
        try:
            seconds, error, server = self.future.result()
        except Exception as reason:
            why = "no server answered in time" if isinstance(reason, TimeoutError) else str(reason)
            self.trials.append((None, why))
            return ms.runner.RunnerResult(None, why)
        if error > TOLERANCE:
            self.trials.append((None, f"wrong by {error:.2g} on {server}"))
            return ms.runner.RunnerResult(None, "its result is wrong")
        self.trials.append((seconds, server))
        best = min(each for each, _ in self.trials if each is not None)
        logging.info(
            "Trial %d of %d: %.4f ms on %s, best %.4f ms",
            *(len(self.trials), OPTIONS.trials, seconds * 1e3, server, best * 1e3),
        )
        return ms.runner.RunnerResult([seconds], None)


@derived_object
class Runner(ms.runner.PyRunner):
    """Keeps all servers busy: as many measurements at a time as there are servers, which the tracker hands out."""

    def __init__(self, config, servers, options):
        super().__init__()
        self.config = config
        self.size = options.size
        self.pool = PopenPoolExecutor(max_workers=servers, timeout=options.timeout)
        self.trials = []  # (seconds, server), or (None, why it failed), in the order of the candidates

    def run(self, runner_inputs):
        """Called by MetaSchedule with the candidates that could be compiled."""
        return [Measurement(self.submit(str(each.artifact_path)), self.trials) for each in runner_inputs]

    def submit(self, path):
        """Measure compiled code; the future has what `measure` returns."""
        return self.pool.submit(measure, self.config, path, self.size)

    def measured(self, path):
        """What `measure` returns; ends the process where no server answers."""
        try:
            return self.submit(path).result()
        except TimeoutError:
            sys.exit(f"No server answered within {OPTIONS.timeout} s; the logs of the TunerServers may say why")


def servers_ready(config, wanted, seconds):
    """How many servers the tracker has for the key: as soon as all that are wanted are there, or after `seconds`.

    Ends the process where there is none by then: TVM itself would ask for one for ever.
    """
    deadline = time.monotonic() + seconds
    found, known = 0, "the tracker can't be reached"
    while True:
        try:
            summary = config.connect_tracker().summary()
        except (OSError, ValueError, RuntimeError) as error:
            known = f"the tracker can't be reached: {error}".splitlines()[0]
        else:
            keys = sorted(server["key"].partition(":")[2] for server in summary["server_info"])
            found = keys.count(config.tracker_key)
            known = f"the tracker knows servers with the keys {', '.join(keys)}" if keys else "the tracker knows none"
        if found >= wanted:
            return found
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    if found:
        logging.warning("Only %d of %d servers came within %d s; going on with them", found, wanted, seconds)
        return found
    sys.exit(
        f"No RPC server with the key {config.tracker_key!r} came within {seconds} s: {known}. Tracker: "
        f"{config.tracker_host}:{config.tracker_port}. See the logs of the TunerServers, and whether their "
        "tuner-server-key is the one that the tuner asks for."
    )


def servers_wanted():
    """How many servers the job has."""
    cluster = json.loads(os.environ.get("MX_CONFIG", "{}")).get("cluster", {})
    return len(cluster.get("tunerserver", [])) or 1


def opened(work_dir, warm_start):
    """Make the folder for the database; returns how many measurements of before count."""
    work_dir.mkdir(parents=True, exist_ok=True)
    if not warm_start:
        for name in DATABASE:
            (work_dir / name).unlink(missing_ok=True)
    records = work_dir / DATABASE[-1]
    known = len(records.read_text().splitlines()) if records.exists() else 0
    if known:
        logging.info("The database in %s has %d measurements of before", work_dir, known)
    return known


def tune(options):
    """Measure, tune, measure again; returns the result."""
    started = time.monotonic()
    target = tvm.target.Target(options.target)
    known = opened(options.work_dir, options.warm_start)
    config = ms.runner.RPCConfig._normalized(ms.runner.RPCConfig(session_timeout_sec=options.timeout))
    servers = servers_ready(config, servers_wanted(), options.wait)
    logging.info("Tuning for %d trials on %d servers with the key %r", options.trials, servers, config.tracker_key)
    builder, runner = Builder(), Runner(config, servers, options)
    program = multiplication(options.size)
    before = compiled(program, target, options.work_dir / "untuned.tar")
    seconds, _, server = runner.measured(before)
    logging.info("Without a schedule: %.4f ms on %s", seconds * 1e3, server)
    database = ms.tir_integration.tune_tir(
        program,
        target,
        str(options.work_dir),
        max_trials_global=options.trials,
        num_trials_per_iter=options.round,
        builder=builder,
        runner=runner,
        cost_model="random",
        strategy="replay-trace",
        num_tuning_cores=1,
        seed=options.seed + known,  # else it would choose the schedules that it has measured already
    )
    measured = [trial for trial in runner.trials if trial[0] is not None]
    if not measured:
        sys.exit(why_none(runner.trials, builder.failures))
    best = ms.tir_integration.compile_tir(database, program, target).mod
    after = compiled(best, target, options.work_dir / "tuned.tar")
    # By turns, so that both had the same chances of a machine that does other things too.
    turns = [(runner.measured(before), runner.measured(after)) for _ in range(TURNS)]
    untuned, tuned = (min(result[0] for result in results) for results in zip(*turns, strict=True))
    error = max(result[1] for _, result in turns)
    logging.info("Before: %.4f ms, tuned: %.4f ms, %.1f times as fast", untuned * 1e3, tuned * 1e3, untuned / tuned)
    if error > TOLERANCE:
        sys.exit(f"The tuned multiplication is wrong by {error:.2g} against numpy")
    logging.info("Its largest relative error against numpy is %.2g", error)
    names = sorted({name for _, name in measured})
    kept = {} if options.work_dir == Path(WORK_DIR) else {"artifact_uri": Path(after).resolve().as_uri()}
    return {
        **kept,
        "trials": len(runner.trials),
        "untuned_ms": round(untuned * 1e3, 4),
        "tuned_ms": round(tuned * 1e3, 4),
        "error": float(f"{error:.2g}"),
        "size": options.size,
        "servers": {name: [one for _, one in measured].count(name) for name in names},
        "trials_ms": [round(seconds * 1e3, 4) for seconds, _ in measured],
        "trials_on": [names.index(name) for _, name in measured],
        "failed_trials": len(runner.trials) - len(measured),
        "seconds": round(time.monotonic() - started, 1),
    }


def main():
    """Tune, and write the result."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.WARNING)  # the rest is in the work folder's logs
    result = tune(OPTIONS)
    if OPTIONS.result:
        OPTIONS.result.write_text(as_text(result))


if __name__ == "__main__":
    main()
