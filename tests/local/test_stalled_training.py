"""Training that hangs without a failed process: the job ends, or what people read says where all workers stand."""

import os
import signal

import pytest
from jobs import gang_job, worker_job
from waiting import eventually

from mxnet_operator.api.conditions import terminal_message
from mxnet_operator.local.images.store import BASE_IMAGE

SCRIPT = """
import os, sys, time
import mxnet as mx
kv = mx.kv.create('dist_sync')
kv.init('w', mx.nd.ones((100,)))
out = mx.nd.zeros((100,))
def step():
    kv.push('w', mx.nd.ones((100,)))
    kv.pull('w', out=out)
    out.wait_to_read()
step()
print('begun', flush=True)
if kv.rank == 1:
    FAULT
while True:
    step()
    time.sleep(0.01)
"""


def stalling_job(name: str, fault: str):
    job = gang_job(name, BASE_IMAGE, ["python", "-c", SCRIPT.replace("FAULT", fault)])
    job["spec"]["runPolicy"] = {"stallTimeoutSeconds": 4}
    return job


@pytest.mark.sampled("sleeps")
@pytest.mark.parametrize(
    ("fault", "where"),
    [
        pytest.param("time.sleep(10000)", "at <string>:14, in <module>", id="sleeps"),
        pytest.param("sys.exit(0)", "at <string>:10, in MXNet's wait_to_read: do all workers", id="leaves early"),
    ],
)
def test_a_worker_that_stands_still_ends_the_job_with_its_place(local_cluster, fault, where):
    name = f"stalls-{len(fault)}"
    local_cluster.create(stalling_job(name, fault))
    message = terminal_message(local_cluster.wait_for(name, "Failed"))
    assert "exited with code 138" in message
    assert f"mxjob: stalled for 4 s, without CPU or output, {where}" in message


@pytest.mark.exhaustive
def test_workers_whose_server_is_stopped_end_the_job(local_cluster):
    """A stopped process is one that no exit code tells of, as on a machine that is lost or swaps."""
    local_cluster.create(stalling_job("stopped", "pass"))
    eventually(lambda: "begun" in local_cluster.mxjob("logs", "stopped").stdout)
    servers = [pid for pid, pod in local_cluster.processes_of("stopped").items() if "server" in pod]
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    message = terminal_message(local_cluster.wait_for("stopped", "Failed"))
    assert "at <string>:10, in MXNet's wait_to_read" in message


IN_WORDS = """
import os, time
if os.environ["HOSTNAME"].endswith("worker-0"):
    print("Epoch[0] Batch [20] Speed: 100.00 samples/sec\\n" * 3)
    place = "/a/train.py:9, in MXNet's wait_to_read: do all workers make as many batches?"
else:
    print("Epoch[0] Batch [20] Speed: 20.00 samples/sec\\n" * 3)
    place = "/a/train.py:5, in load"
print("mxjob: stalled for 300 s, without CPU or output, at", place, flush=True)
time.sleep(10000)
"""


def shows(text: str, *parts: str) -> bool:
    return all(part in text for part in parts)


def test_describe_and_get_say_in_one_sentence_where_all_workers_stand(local_cluster):
    """Nobody waits five minutes here: these workers write what the hook would."""
    job = worker_job("words", IN_WORDS)
    job["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] = 2
    local_cluster.create(job)
    said = "stalled for 5m: worker-1 stands at train.py:5 in load, worker-0 waits in MXNet's wait_to_read at train.py:9"
    slow = "Below 70 % of the workers' median speed: worker-1 on node local (20 %)."
    for command in (["describe", "words"], ["get", "words", "-o", "wide"]):
        eventually(lambda command=command: shows(local_cluster.mxjob(*command).stdout, said, slow))
    local_cluster.mxjob("delete", "words")
