"""A job of one worker without servers, what its MXNet is told, and a result that its log carries."""

import json

from jobs import worker_job

from mxnet_operator.client import MXJobClient

TRAIN = """
import json, os
told = {name: value for name, value in os.environ.items() if name.startswith("DMLC_")}
import mxnet as mx
kv = mx.kv.create(os.environ.get("KV_STORE", "local"))
weight, gradient = mx.nd.ones((2, 2)), mx.nd.ones((2, 2))
kv.init(0, weight)
kv.push(0, [gradient, gradient])
kv.pull(0, out=weight)
print(json.dumps({"told": told, "weight": weight.asnumpy().tolist(), "workers": kv.num_workers}))
"""

LONG_RESULT = """
import json
print("done")
with open("/dev/termination-log", "w") as result:
    json.dump({"losses": list(range(3000))}, result)
"""


def test_a_job_of_one_worker_and_no_server_trains_as_a_local_one(local_cluster):
    job = worker_job("single", TRAIN)
    template = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]
    job["spec"]["mxReplicaSpecs"] |= {kind: {"replicas": 0, "template": template} for kind in ("Scheduler", "Server")}

    done = local_cluster.mxjob("run", "-f", "-", stdin=json.dumps(job))

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["weight"] == [[2, 2], [2, 2]]
    assert result["workers"] == 1
    told = result["told"]
    assert (told["DMLC_ROLE"], told["DMLC_WORKER_ID"]) == ("worker", "0")
    assert (told["DMLC_NUM_WORKER"], told["DMLC_NUM_SERVER"]) == ("1", "0")
    assert (told["DMLC_PS_ROOT_URI"], told["DMLC_PS_ROOT_PORT"]) == ("", "0")


def test_a_result_above_4_kib_arrives_by_every_door(local_cluster, tmp_path):
    job = worker_job("long-result", LONG_RESULT)
    done = local_cluster.mxjob("run", "-f", "-", "--output-dir", str(tmp_path), stdin=json.dumps(job))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"
    expected = {"losses": list(range(3000))}
    assert json.loads((tmp_path / "result").read_text()) == expected
    with MXJobClient(kubeconfig=local_cluster.kubeconfig, namespace="default") as client:
        assert client.result("long-result") == expected
