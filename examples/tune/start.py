"""Starts the part of a TVM tuning job that MX_CONFIG says: the RPC tracker, an RPC server, or the tuner.

    python start.py python tune.py --trials 16

is the command of all replicas; what comes after `start.py` is the tuner's command. It gets the tracker's address and
the servers' key in TVM_TRACKER_HOST, TVM_TRACKER_PORT and TVM_TRACKER_KEY, where TVM's own classes look for them.
"""

import json
import logging
import os
import shutil
import socket
import sys
import time

KEY_IS_MISSING = (
    "The servers have no key, so no tuner can ask for them. Give them one: the annotation tuner-server-key in the "
    "metadata of the TunerServer's template (in kubeflow.org/v1beta1 its field `label`)."
)


def main():
    """Become what this replica is."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    config = json.loads(os.environ["MX_CONFIG"])
    kind, index = config["task"]["type"], config["task"]["index"]
    if kind not in ("tunertracker", "tunerserver", "tuner"):
        sys.exit(f"start.py is for tuning jobs; a replica of type {kind} has nothing to do here")
    tracker = config["cluster"]["tunertracker"][0]
    key = config["labels"].get("tunerserver", "")
    if kind == "tunertracker":
        serve_tracker(tracker["port"])
    elif not key:
        sys.exit(KEY_IS_MISSING)
    elif kind == "tunerserver":
        serve(f"{kind}-{index}", config["cluster"][kind][index]["port"], key, (tracker["url"], tracker["port"]))
    else:
        tune(tracker, key, sys.argv[1:])


def serve_tracker(port):
    """Keep the list of servers, and hand one to each who asks. Ends only when it is stopped."""
    program = [sys.executable, "-m", "tvm.exec.rpc_tracker", "--host", own_address()]
    os.execv(program[0], [*program, "--port", str(port), "--port-end", str(port + 1)])


def serve(name, port, key, tracker):
    """Measure what tuners send. Ends only when it is stopped.

    As `python -m tvm.exec.rpc_server --port ... --tracker ... --key ...`, but that clients may ask for its name.
    """
    if not shutil.which("g++"):
        sys.exit("An RPC server links what it is sent, and g++ is missing: apt-get install g++ (dnf: gcc-c++).")
    from tvm import rpc  # noqa: PLC0415 - no other replica needs it

    def tell_name():
        import tvm_ffi  # noqa: PLC0415 - this runs in the process that TVM starts for the server

        tvm_ffi.register_global_func("example.server_name", lambda: name)

    wait_for(tracker)
    # Else the tracker would know each server by the address that it calls from, which isn't always its own.
    address = own_address()
    known_as = None if address == "0.0.0.0" else address
    server = rpc.Server(
        address, port, port + 1, key=key, tracker_addr=tracker, custom_addr=known_as, server_init_callback=tell_name
    )
    server.proc.join()
    sys.exit("The RPC server ended, which it never does by itself; its log is above.")


def wait_for(tracker):
    """Wait until the tracker listens, a minute at most: TVM itself looks every five seconds only."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(tracker, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)


def tune(tracker, key, command):
    """Run the tuner's command."""
    if not command:
        sys.exit("start.py needs the tuner's command: python start.py python tune.py")
    wait_for((tracker["url"], tracker["port"]))
    os.environ.update(TVM_TRACKER_HOST=tracker["url"], TVM_TRACKER_PORT=str(tracker["port"]), TVM_TRACKER_KEY=key)
    os.execvp(command[0], command)


def own_address():
    """The address to listen at: the pod's, so that replicas that share a machine can use one port."""
    return os.environ.get("POD_IP") or "0.0.0.0"


if __name__ == "__main__":
    main()
