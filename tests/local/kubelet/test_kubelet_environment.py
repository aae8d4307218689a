"""What a container finds in its environment."""

import pytest
from kubelet_fixtures import IMAGE, make_pod, state, statuses, terminated

from mxnet_operator.api.names import GANG_MEMBER_ANNOTATION
from mxnet_operator.kube.resources import CONFIGMAPS, SERVICES
from mxnet_operator.local.images.environment import installed_interpreter
from mxnet_operator.local.images.uv_process import BuildError, ImageError
from mxnet_operator.local.kubelet.environment import Variable, expand
from mxnet_operator.local.kubelet.loopback import Names, Pending, PodIndex, adapt


# Of Kubernetes' third_party/forked/golang/expansion/expand_test.go, and a shell's own substitution.
@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(VAR_A)", "A"),
        ("___$(VAR_B)___", "___B___"),
        ("$(VAR_A)_$(VAR_B)_$(VAR_C)", "A_B_C"),
        ("$$(VAR_B)_$(VAR_A)", "$(VAR_B)_A"),
        ("f000-$$VAR_A", "f000-$VAR_A"),
        ("foo\\\\$(VAR_C)bar", "foo\\\\Cbar"),
        ("$(VAR_A$(VAR_B)", "$(VAR_A$(VAR_B)"),
        ("$(VAR_REF)", "$(VAR_A)"),
        ("foo$(VAR_EMPTY)bar", "foobar"),
        ("foo$(VAR_Awhoops!", "foo$(VAR_Awhoops!"),
        ("$VAR_A", "$VAR_A"),
        ("$(VAR_DNE)", "$(VAR_DNE)"),
        ("$$$$$$$(VAR_A)", "$$$A"),
        ("${VAR_A}", "${VAR_A}"),
        ("$(VAR_A)foobarzab$", "Afoobarzab$"),
        ("--$($($($($--", "--$($($($($--"),
        ("$(foo$$var)", "$(foo$$var)"),
        ("$(cat /etc/$(VAR_A))", "$(cat /etc/$(VAR_A))"),
        ("$() $( ) $(VAR_A", "$() $( ) $(VAR_A"),
    ],
)
def test_references_are_expanded_as_in_kubernetes(text, expanded):
    values = {"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}
    assert expand(text, values) == expanded


async def test_a_pod_learns_about_itself(node):
    fields = {
        "NAME": "metadata.name",
        "SPACE": "metadata.namespace",
        "UID_": "metadata.uid",
        "LABEL": "metadata.labels['tier']",
        "IP": "status.podIP",
        "NODE": "spec.nodeName",
    }
    env = {key: {"fieldRef": {"fieldPath": path}} for key, path in fields.items()}
    env["WHERE"] = "$(SPACE)/$(NAME)"
    pod = await node.run(
        "self",
        "echo $NAME $SPACE $UID_ $LABEL $IP $NODE $WHERE $HOSTNAME",
        env=env,
        labels={"tier": "front"},
    )
    uid, address = pod["metadata"]["uid"], pod["status"]["podIP"]
    assert await node.log("self") == f"self default {uid} front {address} local default/self self\n"


async def test_the_environment_of_the_host_stays_outside(node, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    await node.run("clean", "env")
    names = {line.partition("=")[0] for line in (await node.log("clean")).splitlines()}
    assert "SECRET_OF_THE_HOST" not in names
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        "PATH",
        "VIRTUAL_ENV",
        "HOME",
        "TMPDIR",
        "HOSTNAME",
        "LANG",
        "TZ",
        "PYTHONUNBUFFERED",
        "PYTHONIOENCODING",
        "MPLBACKEND",
        "SDL_VIDEODRIVER",
        "PYTHONPATH",
        "OMP_NUM_THREADS",
        "CUDA_VISIBLE_DEVICES",
        "MXJOB_CLUSTER_ID",
        "MXJOB_CONTAINER_ID",
    }


async def test_python_2_prints_text_of_any_language_into_the_log(node):
    python = installed_interpreter("2.7")
    if python is None:
        pytest.skip("Python 2.7 isn't on this machine")
    await node.run("text", f"""{python} -c 'print(u"\\u4e2d")'""")
    assert await node.log("text") == "\u4e2d\n"


async def test_a_missing_config_map_keeps_the_container_waiting_until_it_is_there(node):
    reference = {"configMapKeyRef": {"name": "settings", "key": "rate"}}
    await node.create(make_pod("set", "echo rate=$RATE", env={"RATE": reference}))
    pod = await node.until("set", lambda pod: waiting_reason(pod) == "CreateContainerConfigError", "said what it lacks")
    assert state(statuses(pod)[0], "waiting")["message"] == 'configmap "settings" not found'
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"rate": "0.1"}}
    await node.client.create(CONFIGMAPS.path("default"), body)
    await node.ended("set")
    assert await node.log("set") == "rate=0.1\n"


async def test_a_source_of_variables_that_the_cluster_lacks_is_said(node):
    source = {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}
    await node.create(make_pod("file", "true", env={"KEY": source}))
    pod = await node.until("file", waiting_reason, "said what it lacks")
    said = "valueFrom.fileKeyRef: the local cluster doesn't support this source"
    assert state(statuses(pod)[0], "waiting")["message"] == said


def waiting_reason(pod):
    """Why the pod's container waits, once it is for another reason than its creation."""
    waiting = next((state(each, "waiting") for each in statuses(pod)), None) or {}
    return waiting.get("reason") if waiting.get("reason") != "ContainerCreating" else None


# Names and addresses


def service(name, **selector):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterIP": "None", "selector": selector},
    }


def placed(name, address, subdomain="", **labels):
    metadata = {"name": name, "namespace": "default", "labels": labels}
    status = {"podIP": address} if address else {}
    return {"metadata": metadata, "spec": {"subdomain": subdomain} if subdomain else {}, "status": status}


def names_of(services, pods):
    index = PodIndex()
    for pod in pods:
        index.change(None, pod)
    return Names("default", {each["metadata"]["name"]: each for each in services}.get, index)


NAMES = names_of(
    [service("digits-scheduler-0", role="scheduler"), service("digits-mx", job="digits")],
    [
        placed("digits-scheduler-0", "127.77.1.1", "digits-mx", role="scheduler", job="digits"),
        placed("digits-worker-0", "127.77.1.2", "digits-mx", job="digits"),
        placed("digits-worker-1", "", "digits-mx", job="digits"),
    ],
)


@pytest.mark.parametrize(
    ("value", "adapted"),
    [
        ("digits-scheduler-0", "127.77.1.1"),
        ("digits-scheduler-0:9091", "127.77.1.1:9091"),
        ("tcp://digits-scheduler-0:9091/x", "tcp://127.77.1.1:9091/x"),
        ("http://digits-scheduler-0.default.svc/x", "http://127.77.1.1/x"),
        ("digits-worker-0.digits-mx", "127.77.1.2"),
        ("digits-worker-0.digits-mx.default", "127.77.1.2"),
        ("digits-worker-0.digits-mx.default.svc.cluster.local", "127.77.1.2"),
        ('{"url":"digits-worker-0.digits-mx","port":9091}', '{"url":"127.77.1.2","port":9091}'),
        ("a,digits-scheduler-0,b", "a,127.77.1.1,b"),
        ("/data/digits-scheduler-0", "/data/digits-scheduler-0"),
        ("digits-scheduler-0/params", "digits-scheduler-0/params"),
        ("my-digits-scheduler-0", "my-digits-scheduler-0"),
        ("digits-scheduler-0.params", "digits-scheduler-0.params"),
        ("digits-worker-0", "digits-worker-0"),
        ("digits-worker-0.digits-mx.other.svc", "digits-worker-0.digits-mx.other.svc"),
    ],
)
def test_names_become_addresses_where_they_are_host_names(value, adapted):
    assert adapt([("X", Variable(value, literal=True))], NAMES, "127.77.9.9").values["X"] == adapted


LATE = "digits-worker-1.digits-mx"


def test_a_name_that_a_pod_has_but_no_address_yet_is_pending():
    result = adapt([("X", Variable(LATE, literal=True))], NAMES, "127.77.9.9")
    assert result.pending == (Pending("digits-worker-1.digits-mx", exists=True),)
    result = adapt([("X", Variable("digits-worker-7.digits-mx", literal=True))], NAMES, "127.77.9.9")
    assert result.pending == (Pending("digits-worker-7.digits-mx", exists=False),)


@pytest.mark.parametrize(
    ("variables", "minimum", "is_placed", "may_come_later"),
    [
        (["MX_CONFIG"], "/3", "False", True),
        (["MX_CONFIG"], "", "False", False),  # the whole gang or nothing: it is being bound
        (["MX_CONFIG"], "/3", "True", False),
        (["DMLC_PS_ROOT_URI"], "/3", "False", False),  # nobody begins without the scheduler
        (["MX_CONFIG", "DMLC_PS_ROOT_URI"], "/3", "False", False),
        (["DMLC_PS_ROOT_URI", "MX_CONFIG"], "/3", "False", False),
    ],
)
def test_a_pod_beyond_min_available_that_has_no_room_may_come_later(variables, minimum, is_placed, may_come_later):
    late = {
        "metadata": {
            "name": "digits-worker-1",
            "namespace": "default",
            "labels": {"job": "digits"},
            "annotations": {GANG_MEMBER_ANNOTATION: f"attempt-0/9/2026-11-22T13:44:00Z{minimum}"},
        },
        "spec": {"hostname": "digits-worker-1", "subdomain": "digits-mx"},
        "status": {"conditions": [{"type": "PodScheduled", "status": is_placed}]},
    }
    service = {
        "metadata": {"name": "digits-mx", "namespace": "default"},
        "spec": {"clusterIP": "None", "selector": {"job": "digits"}},
    }
    given = [(variable, Variable(LATE, literal=True)) for variable in variables]
    (pending,) = adapt(given, names_of([service], [late]), "127.77.9.9").pending
    assert pending == Pending("digits-worker-1.digits-mx", exists=True, may_come_later=may_come_later)


def test_a_name_follows_the_changes_of_its_pods():
    index = PodIndex()
    names = Names("default", {"digits-mx": service("digits-mx", job="digits")}.get, index)
    first, second, other = (
        placed("digits-worker-0", address, "digits-mx", job=job)
        for address, job in (("", "digits"), ("127.77.1.7", "digits"), ("127.77.1.7", "other"))
    )
    seen = []
    for old, new in ((None, first), (first, second), (second, other), (other, second), (second, None)):
        index.change(old, new)
        seen.append(names.look_up("digits-worker-0.digits-mx"))
    missing, late = (Pending("digits-worker-0.digits-mx", exists) for exists in (False, True))
    assert seen == [late, "127.77.1.7", missing, "127.77.1.7", missing]


def test_of_two_pods_with_one_name_the_one_that_is_not_being_deleted_has_it():
    leaving = placed("a", "127.77.1.1", "digits-mx", job="digits")
    leaving["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z"
    new = placed("b", "127.77.1.2", "digits-mx", job="digits")
    for pod in (leaving, new):
        pod["spec"]["hostname"] = "digits-worker-0"
    names = names_of([service("digits-mx", job="digits")], [leaving, new])
    assert names.look_up("digits-worker-0.digits-mx") == "127.77.1.2"


def test_what_a_field_reference_gave_is_not_taken_for_a_host_name():
    result = adapt([("POD", Variable("digits-scheduler-0", literal=False))], NAMES, "127.77.9.9")
    assert result.values["POD"] == "digits-scheduler-0"


def test_a_name_in_a_value_that_a_later_one_replaces_is_not_waited_for():
    given = [(name, Variable(value, literal=True)) for name in ("A", "DMLC_PS_ROOT_URI") for value in (LATE, "1")]
    result = adapt([*given, ("DMLC_USE_KUBERNETES", Variable("1", literal=True))], NAMES, "127.77.9.9")
    assert result.pending == ()
    assert result.values == {"A": "1", "DMLC_PS_ROOT_URI": "1", "DMLC_USE_KUBERNETES": "1", "OMP_NUM_THREADS": "1"}


def test_a_root_that_became_an_address_takes_the_kubernetes_flag_away():
    flag = {"DMLC_USE_KUBERNETES": Variable("1", literal=True), "DMLC_ROLE": Variable("worker", literal=True)}
    by_name = {**flag, "DMLC_PS_ROOT_URI": Variable("digits-scheduler-0", literal=True)}
    values = adapt(by_name.items(), NAMES, "127.77.9.9").values
    assert "DMLC_USE_KUBERNETES" not in values
    assert values["DMLC_NODE_HOST"] == "127.77.9.9"
    by_other_name = {**flag, "DMLC_PS_ROOT_URI": Variable("elsewhere", literal=True)}
    assert adapt(by_other_name.items(), NAMES, "127.77.9.9").values["DMLC_USE_KUBERNETES"] == "1"


def test_the_templates_own_thread_count_and_host_win():
    own = {name: Variable("7", literal=True) for name in ("OMP_NUM_THREADS", "DMLC_NODE_HOST", "DMLC_ROLE")}
    assert adapt(own.items(), NAMES, "127.77.9.9").values == dict.fromkeys(own, "7")
    assert adapt([], NAMES, "127.77.9.9").values == {"OMP_NUM_THREADS": "1"}


SERVER = """
import os, socket
listener = socket.create_server((os.environ["MY_IP"], 9091))
connection, _ = listener.accept()
connection.sendall(b"hello from " + os.environ["MY_IP"].encode())
"""
CLIENT = """
import os, socket, time
for attempt in range(200):
    try:
        connection = socket.create_connection((os.environ["PEER"], 9091))
        break
    except ConnectionRefusedError:
        time.sleep(0.02)
print(connection.recv(100).decode())
"""


async def test_a_container_waits_for_the_address_of_a_pod_that_comes_later_and_reaches_it(node):
    await node.client.create(SERVICES.path("default"), service("gang", job="x"))
    await node.create(make_pod("client", "python", "-c", CLIENT, env={"PEER": "server.gang"}))
    said = await node.event("client", "WaitingForAddress")
    assert "server.gang" in said["message"]
    ip = {"MY_IP": {"fieldRef": {"fieldPath": "status.podIP"}}}
    server = await node.run(
        "server", "python", "-c", SERVER, env=ip, labels={"job": "x"}, subdomain="gang", hostname="server"
    )
    assert terminated(server)["exitCode"] == 0
    await node.ended("client")
    assert await node.log("client") == f"hello from {server['status']['podIP']}\n"


async def test_a_name_that_never_gets_a_pod_is_left_as_it_is_after_a_while(node):
    await node.client.create(SERVICES.path("default"), service("lonely", job="y"))
    await node.run("stubborn", "echo $PEER", env={"PEER": "nobody.lonely"})
    assert await node.log("stubborn") == "nobody.lonely\n"


# Images


async def test_an_unknown_image_keeps_a_pod_waiting_with_a_message_until_it_is_added(node):
    await node.create(make_pod("early", "echo up", container={"image": "mine:1"}))
    pod = await node.until("early", lambda pod: waiting_reason(pod) == "ImagePullBackOff", "backed off")
    assert state(statuses(pod)[0], "waiting")["message"] == "no image mine:1; add it"
    assert "ErrImagePull" in (await node.event("early", "Failed"))["message"]
    node.images.known.add("mine:1")
    assert (await node.ended("early"))["status"]["phase"] == "Succeeded"


async def test_an_image_that_can_t_be_built_now_is_tried_again_and_says_why(node):
    node.images.broken[IMAGE] = ImageError("no network")
    await node.create(make_pod("broken", "true"))
    pod = await node.until("broken", waiting_reason, "said why")
    assert state(statuses(pod)[0], "waiting")["message"] == "no network"
    assert (await node.event("broken", "Pulling"))["type"] == "Normal"
    node.images.broken.clear()
    assert (await node.ended("broken"))["status"]["phase"] == "Succeeded"
    await node.create(make_pod("never", "true", container={"image": "mine:1"}))
    await node.until("never", waiting_reason, "waited")
    await node.delete("never")
    await node.gone("never")


async def test_an_image_that_can_never_be_built_fails_its_pod_with_the_reason(node):
    node.images.broken[IMAGE] = BuildError("`import mxnet` fails in it")
    pod = await node.run("hopeless", "true")
    assert pod["status"]["phase"] == "Failed"
    assert terminated(pod)["exitCode"] == 128
    assert "`import mxnet` fails in it\nIt isn't built again" in terminated(pod)["message"]


async def test_a_container_works_in_its_own_copy_of_the_images_folder(tmp_path, node):
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "train.py").write_text("import os; print(sorted(os.listdir('.'))); open('made', 'w').close()")
    node.images.folder = folder
    for name, directory in (("a", None), ("b", "/workspace")):
        container = {"workingDir": directory} if directory else {}
        command = ["python", f"{directory}/train.py" if directory else "train.py"]
        await node.run(name, *command, container=container)
        assert await node.log(name) == "['train.py']\n"
    assert [each.name for each in folder.iterdir()] == ["train.py"]
