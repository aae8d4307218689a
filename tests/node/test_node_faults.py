"""What a kubelet decides: rows of docs/failures.md on a real node, with processes that are cheaper than MXNet."""

import json
import sys
from pathlib import Path

from apiserver_objects import binding
from controller_fixtures import submitted
from kubernetes_programs import kubectl
from real_node.cheap_gang import BUSYBOX, SERVE, UNTIL_AGAIN, gang, with_state
from real_node.configuration import DISK_PRESSURE_MIB, MEMORY_PRESSURE_MIB, PAUSE_IMAGE
from real_node.node import NODE
from waiting import SECONDS, eventually

PYTHON = "docker.io/mxjob/digits:1.0"


def measured(world, pod):
    """What its kubelet has measured of a pod; nothing before it has."""
    summary = json.loads(world.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/stats/summary"))
    wanted = {"namespace": world.namespace, "name": pod}
    return next((each for each in summary["pods"] if wanted.items() <= each["podRef"].items()), {})


def written(world, pod, volume):
    """How many MiB a pod has written into a volume, as far as its kubelet knows."""
    volumes = measured(world, pod).get("volume", ())
    return sum(each.get("usedBytes", 0) >> 20 for each in volumes if each["name"] == volume)


def it_is_evicted_counted_and_comes_again(world, state, resource):
    """Wait until the gang's first worker is evicted for a resource that its node is low on, and the gang has ended."""
    world.wait("mxjob/gang", "jsonpath={.status.restarts}=1")
    (said,) = world.events("gang", "MXJobRestarting")
    assert "1 Worker replica(s) failed (restart 1; 1 of 1 count). worker-0 " in said
    assert f"Evicted: The node was low on resource: {resource}." in said
    (state / "again").touch()
    world.ended("gang", "Succeeded")


def by_a_controller_elsewhere(world, what, holds):
    """Wait for something while those on the node are gone: as a controller on another node brings it about."""
    controller = f"{Path(sys.executable).with_name('mxnet-operator')} run --namespace={world.namespace}"
    wait = f"{kubectl()} wait {what} '--for={holds}' --namespace={world.namespace} --timeout={SECONDS - 30}s"
    world.node.run("sh", "-c", f"{controller} & {wait}; code=$?; kill $!; wait; exit $code")


def bind(world, pod):
    """Give a pod to the node, as a scheduler does."""
    path = f"/api/v1/namespaces/{world.namespace}/pods/{pod}/binding"
    world.kubectl("create", "--raw", path, "-f", "-", text=json.dumps(binding(pod, NODE)))


def test_a_worker_that_is_killed_for_its_memory_fails_the_job_which_names_the_limit(world):
    script = "x = bytearray(512 << 20); x[::4096] = bytes([1]) * len(x[::4096])"
    sizes = {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    # Without the hook, which makes a child of the script: on cgroup v1 the kernel would kill that alone.
    job = gang(image=PYTHON, command=["python", "-S", "-c", script], resources=sizes)
    world.create(submitted(job))
    assert "exited with code 137 (OOMKilled: its memory limit is 128Mi)" in world.ended("gang", "Failed")


def test_a_worker_that_fills_its_volume_is_evicted_which_counts_as_a_failure(world):
    """Eviction for the pod's own limits; the kubelet looks at volumes every ten seconds."""
    job = submitted(gang(command=["sh", "-c", "head -c 8388608 /dev/zero > /data/file; sleep 86400"]))
    job["spec"]["runPolicy"] = {"backoffLimit": 0}
    spec = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["volumes"] = [{"name": "data", "emptyDir": {"sizeLimit": "1Mi"}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    world.create(job)
    assert 'Evicted: Usage of EmptyDir volume "data" exceeds the limit "1Mi"' in world.ended("gang", "Failed")


def test_a_node_whose_disk_is_full_evicts_who_wrote_most_which_counts_and_the_gang_comes_again(world, state):
    """The other kind of eviction: for the node's own sake, of a pod that is within its limits."""
    fill = f"head -c {DISK_PRESSURE_MIB}m /dev/zero > /data/file"
    once = f"[ -e /state/again ] || [ $HOSTNAME != gang-worker-0 ] || {fill}"
    job = with_state(gang(command=["sh", "-c", f"{once}; {UNTIL_AGAIN[-1]}"]).run_policy(backoffLimit=1), state)
    spec = job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["volumes"].append({"name": "data", "emptyDir": {}})
    spec["containers"][0]["volumeMounts"].append({"name": "data", "mountPath": "/data"})
    world.create(job)
    world.wait("mxjob/gang", "condition=Running")
    eventually(lambda: written(world, "gang-worker-0", "data") >= DISK_PRESSURE_MIB, every=1)
    with world.node.full():
        it_is_evicted_counted_and_comes_again(world, state, "ephemeral-storage")


def test_a_node_short_of_memory_evicts_who_took_most_which_counts_and_the_gang_comes_again(world, state):
    script = f"import time; x = bytearray({MEMORY_PRESSURE_MIB} << 20); x[::4096] = x[1::4096]; time.sleep(86400)"
    once = f"[ -e /state/again ] || [ $HOSTNAME != gang-worker-0 ] || python -S -c '{script}'"
    command = ["sh", "-c", f"{once}; {UNTIL_AGAIN[-1]}"]
    world.create(with_state(gang(image=PYTHON, command=command).run_policy(backoffLimit=1), state))
    world.wait("mxjob/gang", "condition=Running")

    def took_it():
        return measured(world, "gang-worker-0").get("memory", {}).get("workingSetBytes", 0) >> 20 >= MEMORY_PRESSURE_MIB

    eventually(took_it, every=1)
    with world.node.short_of_memory():
        world.node.wait(f"node/{NODE}", "condition=MemoryPressure")
        it_is_evicted_counted_and_comes_again(world, state, "memory")


def test_an_image_that_can_not_be_pulled_ends_the_job_in_the_runtimes_words(world):
    job = gang(image="docker.io/nobody/nothing:0", command=["true"]).run_policy(progressDeadlineSeconds=20)
    world.create(submitted(job))
    message = world.ended("gang", "Failed")
    assert "made no progress for 20 s: worker-0, worker-1 did not start (container mxnet: " in message
    assert "ErrImagePull" in message or "ImagePullBackOff" in message
    assert "nobody/nothing" in message


def test_init_containers_run_first_and_a_sidecar_holds_nothing_up(world, state):
    files = [{"name": "state", "mountPath": "/state"}]
    fetch = {"name": "fetch", "image": BUSYBOX, "command": ["sh", "-c", "echo fetched > /state/data"]}
    sidecar = {"name": "proxy", "image": BUSYBOX, "command": ["sleep", "86400"], "restartPolicy": "Always"}
    before = [{**fetch, "volumeMounts": files}, sidecar]
    world.create(with_state(gang(command=["cat", "/state/data"]).template("Worker", initContainers=before), state))
    world.ended("gang", "Succeeded")
    assert world.kubectl("logs", "gang-worker-1", "--container=mxnet").strip() == "fetched"


def test_a_proxy_that_was_injected_and_never_ends_is_stopped_and_its_pod_is_listed_as_completed(world):
    job = submitted(gang(command=["true"]))
    until_asked = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.2; done"]  # as Istio's agent
    proxy = {"name": "istio-proxy", "image": BUSYBOX, "command": until_asked}
    job["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append(proxy)
    world.create(job)
    world.ended("gang", "Succeeded")
    world.wait("pod/gang-worker-0", "jsonpath={.status.phase}=Failed")
    assert world.kubectl("get", "pod", "gang-worker-0", "--no-headers").split()[2] == "Completed"


def test_a_kubelet_that_is_killed_in_the_middle_changes_nothing(world, state):
    world.create(with_state(gang(command=UNTIL_AGAIN), state))
    world.wait("mxjob/gang", "condition=Running")
    uids = {name: pod["metadata"]["uid"] for name, pod in world.pods("gang").items()}
    with world.node.down("kubelet"):
        (state / "again").touch()
    world.ended("gang", "Succeeded")
    assert world.get("mxjob", "gang")["status"].get("restarts", 0) == 0
    kept = {name: pod["metadata"]["uid"] for name, pod in world.pods("gang").items()}
    assert kept.items() <= uids.items()


def test_a_node_that_reboots_restarts_the_gang_and_counts_no_failure(world, state):
    world.create(with_state(gang(command=UNTIL_AGAIN).run_policy(backoffLimit=0), state))
    world.wait("mxjob/gang", "condition=Running")
    with world.node.down("kubelet", "containerd"):
        world.node.kill_containers()
        (state / "again").touch()
    world.ended("gang", "Succeeded")
    assert world.get("mxjob", "gang")["status"]["restarts"] == 1


def test_a_node_that_shuts_down_in_an_orderly_way_restarts_the_gang_and_counts_no_failure(world, state):
    """As where a spot node is reclaimed; the machine's logind is a stand-in, the kubelet that it tells is not."""
    node = world.node
    world.create(with_state(gang(command=UNTIL_AGAIN).run_policy(backoffLimit=0), state))
    world.wait("mxjob/gang", "condition=Running")
    node.power_off()
    world.wait("pod", "jsonpath={.status.reason}=Terminated", "--all")
    with node.down("kubelet", "containerd"):
        node.kill_containers()
        (state / "again").touch()
    node.wait(f"node/{NODE}", "condition=Ready")
    world.ended("gang", "Succeeded")
    (said,) = world.events("gang", "MXJobRestarting")
    assert "(restart 1; 0 of 0 count)" in said
    assert "was disrupted (TerminationByKubelet) while the job ran: Terminated: Pod was terminated in" in said
    node.rolled_out("mxnet-operator", "mxnet-operator")


def test_pods_that_come_to_a_node_while_it_shuts_down_are_rejected_which_counts_no_failure(world, state):
    """A scheduler bound them just before it heard of the shutdown: this test, since they name one that isn't there."""
    node, job = world.node, gang(command=UNTIL_AGAIN).run_policy(backoffLimit=0)
    for replica_type in ("Scheduler", "Server", "Worker"):
        job = job.template(replica_type, schedulerName="late")
    world.create(with_state(job, state))
    first = eventually(lambda: len(pods := world.pods("gang")) == 4 and pods)
    node.power_off()
    for pod in first:
        bind(world, pod)
    world.wait("pod", "jsonpath={.status.reason}=NodeShutdown", "--all")
    by_a_controller_elsewhere(world, "mxjob/gang", "condition=Restarting")
    conditions = world.get("mxjob", "gang")["status"]["conditions"]
    (said,) = [each["message"] for each in conditions if each["type"] == "Restarting"]
    assert "(restart 1; 0 of 0 count)" in said
    assert "was stopped by its node while the job ran: NodeShutdown: Pod was rejected: " in said
    with node.down("kubelet", "containerd"):
        node.kill_containers()
    node.wait(f"node/{NODE}", "condition=Ready")
    uids = {pod["metadata"]["uid"] for pod in first.values()}

    def again():
        pods = world.pods("gang")
        return len(pods) == 4 and uids.isdisjoint(pod["metadata"]["uid"] for pod in pods.values()) and pods

    for pod in eventually(again):
        bind(world, pod)
    (state / "again").touch()
    world.ended("gang", "Succeeded")
    node.rolled_out("mxnet-operator", "mxnet-operator")


def test_a_worker_that_makes_room_for_a_critical_pod_restarts_the_gang_and_counts_no_failure(world, state):
    """Each of the three takes two fifths of the node's memory, so one worker is enough, and nobody else is."""
    memory = world.node.get("node", NODE)["status"]["allocatable"]["memory"]
    resources = {"requests": {"memory": f"{int(memory.removesuffix('Ki')) * 2 // 5}Ki"}}
    job = gang(command=UNTIL_AGAIN, resources=resources).run_policy(backoffLimit=0)
    world.create(with_state(job, state))
    world.wait("mxjob/gang", "condition=Running")
    container = {"name": "main", "image": BUSYBOX, "command": SERVE, "resources": resources}
    spec = {"nodeName": NODE, "priorityClassName": "system-node-critical", "containers": [container]}
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "critical"}, "spec": spec})
    world.wait("mxjob/gang", "jsonpath={.status.restarts}=1")
    (said,) = world.events("gang", "MXJobRestarting")
    assert "(restart 1; 0 of 0 count)" in said
    assert "was disrupted (TerminationByKubelet) while the job ran: Preempting: Preempted in order to admit" in said
    world.wait("pod/critical", "condition=Ready")
    world.kubectl("delete", "pod", "critical")
    (state / "again").touch()
    world.ended("gang", "Succeeded")


def test_a_worker_whose_liveness_probe_fails_is_stopped_which_counts_as_a_failure(world, state):
    alive = {"exec": {"command": ["test", "!", "-e", "/state/hung"]}, "periodSeconds": 1, "failureThreshold": 1}
    job = gang(command=UNTIL_AGAIN, livenessProbe=alive).run_policy(backoffLimit=1)
    world.create(with_state(job, state))
    world.wait("mxjob/gang", "condition=Running")
    (state / "hung").touch()
    world.wait("mxjob/gang", "jsonpath={.status.restarts}=1")
    (said,) = world.events("gang", "MXJobRestarting")
    assert "(restart 1; 1 of 1 count)" in said
    assert "exited with code 143" in said
    (state / "hung").unlink()
    (state / "again").touch()
    world.ended("gang", "Succeeded")


def test_an_init_container_that_fails_is_named_with_its_last_lines(world):
    fetch = {"name": "fetch", "image": BUSYBOX, "command": ["sh", "-c", "echo no such bucket; exit 3"]}
    world.create(submitted(gang(command=SERVE).template("Worker", initContainers=[fetch])))
    message = world.ended("gang", "Failed")
    assert "'s init container fetch exited with code 3:\nno such bucket" in message


def test_an_image_without_a_shell_ends_the_job_which_says_how_to_do_without(world):
    world.create(submitted(gang(image=PAUSE_IMAGE, command=["/bin/busybox", "true"])))
    message = world.ended("gang", "Failed")
    assert "exited with code 128 (StartError)" in message
    assert "runPolicy.failFast: false" in message
    world.kubectl("delete", "mxjob", "gang", "--cascade=foreground")
    world.create(submitted(gang(image=PAUSE_IMAGE, command=["/bin/busybox", "true"]).run_policy(failFast=False)))
    world.ended("gang", "Succeeded")


def test_a_pod_that_the_kubelet_rejects_counts_as_a_failure(world):
    """Placed by its template, so that no scheduler keeps it from a node that is too small."""
    worker = gang(command=SERVE, resources={"requests": {"cpu": "1000"}}).template("Worker", nodeName=NODE)
    world.create(submitted(worker.run_policy(backoffLimit=0)))
    message = world.ended("gang", "Failed")
    assert "OutOfcpu: " in message
    assert "specified backoff limit (0)" in message
