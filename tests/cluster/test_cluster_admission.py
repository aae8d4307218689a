"""The admission policies of the base: what the controller's token can't do even where RBAC would let it.

The account is bound to cluster-admin here, so that each refusal is a policy's and no role's.
"""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from apiserver_fixtures import Api
from builders import make_mxjob
from control_plane import control_plane
from control_plane_fixtures import new_namespace, real_api
from controller_fixtures import submitted
from deployment import (
    MANIFESTS,
    POLICIES,
    Administrator,
    of_kind,
    policies_in_force,
    rendered,
    token_of,
    user_name,
)
from kubernetes_programs import CONTROL_PLANE, programs_or_skip
from left_overs import folder_prefix
from older_jobs import kind_of_format, older_job
from waiting import SECONDS

from mxnet_operator.api import names
from mxnet_operator.builders.fail_fast import CONFIG_MAP, config_map
from mxnet_operator.client.resources import resource_of

pytestmark = pytest.mark.kubernetes

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
OVERLAY = "legacy"


@pytest.fixture(scope="module")
def server():
    paths = programs_or_skip(CONTROL_PLANE)
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as name, control_plane(paths, Path(name), []) as running:
        yield running


@pytest.fixture(scope="module")
def objects():
    return rendered(OVERLAY)


@pytest.fixture(scope="module")
def installed(server, objects):
    """The overlay, with every right in the cluster besides; the policies are in force."""

    async def install():
        ask = Administrator(server)
        await ask("apply", "-k", MANIFESTS / "overlays" / OVERLAY)
        crds = [f"crd/{each['metadata']['name']}" for each in of_kind(objects, "CustomResourceDefinition")]
        await ask.wait("condition=Established", *crds)
        account = user_name(objects).removeprefix("system:serviceaccount:")
        await ask("create", "clusterrolebinding", "all", "--clusterrole=cluster-admin", f"--serviceaccount={account}")
        await policies_in_force(server, objects)

    asyncio.run(install())


@pytest.fixture
async def admin(server, installed):
    async with real_api(server) as api:
        yield api


@pytest.fixture
def token(server, installed, objects):
    return token_of(server, objects)


@pytest.fixture
def controller(admin, token):
    """Whoever has the controller's token."""
    return Api(admin.session, admin.base, token)


def owner(name="digits", uid="0", *, api_version="kubeflow.org/v1", kind="MXJob", controller=True):
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller}


def pod(name, *owners, **spec):
    containers = [{"name": "mxnet", "image": "i"}]
    metadata = {"name": name, "labels": {"app": name}, "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def service(name, *owners, **spec):
    spec = {"clusterIP": "None", "ports": [{"port": 80}], **spec}
    return {"metadata": {"name": name, "ownerReferences": list(owners)}, "spec": spec}


class AdmissionWorld:
    """A namespace with a job, its pod and Service, and what belongs to others."""

    def __init__(self, namespace):
        self.namespace = namespace

    def path(self, resource, name="", *, namespace=None):
        path = f"/api/v1/namespaces/{namespace or self.namespace}/{resource}"
        return f"{path}/{name}" if name else path

    async def build(self, admin):
        jobs = f"/apis/kubeflow.org/v1/namespaces/{self.namespace}/mxjobs"
        manifest = submitted(make_mxjob("digits").worker(1))
        manifest["metadata"]["namespace"] = self.namespace
        self.owner = owner(uid=(await admin.post(jobs, manifest)).ok()["metadata"]["uid"])
        # It is there, or Kubernetes would collect what it owns; and it has no controller of its own that would act.
        made = (
            await admin.post(
                self.path("podtemplates"), {"metadata": {"name": "web"}, "template": {"spec": pod("x")["spec"]}}
            )
        ).ok()
        self.other = owner("web", made["metadata"]["uid"], api_version="v1", kind="PodTemplate")
        for each in (
            pod("ours", self.owner),
            pod("bare"),
            pod("replica", self.other),
            pod("bystander", {**self.owner, "controller": False}),
        ):
            (await admin.post(self.path("pods"), each)).ok()
        for each in (service("ours", self.owner), service("theirs")):
            (await admin.post(self.path("services"), each)).ok()
        for each in (config_map(self.namespace), {"metadata": {"name": "theirs"}, "data": {"a": "b"}}):
            (await admin.post(self.path("configmaps"), each)).ok()
        return self


@pytest.fixture(scope="module")
def untouched(server, installed):
    """The world of all requests that change nothing."""

    async def build():
        async with real_api(server) as admin:
            made = await admin.post("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
            world = AdmissionWorld(made.ok()["metadata"]["name"])
            accounts = world.path("serviceaccounts")
            async with asyncio.timeout(SECONDS), admin.watch(accounts, fieldSelector="metadata.name=default") as stream:
                await stream.next()
            return await world.build(admin)

    return asyncio.run(build())


@pytest.fixture
async def world(admin):
    """A world of a test's own."""
    async with new_namespace(admin, settled=True) as namespace:
        yield await AdmissionWorld(namespace).build(admin)


def creates(resource, build, namespace=None):
    return lambda s: ("POST", s.path(resource, namespace=namespace), build(s), None)


def changes(resource, name, build, kind=MERGE):
    return lambda s: ("PATCH", s.path(resource, name), build(s), kind)


def deletes(resource, name, namespace=None):
    return lambda s: ("DELETE", s.path(resource, name, namespace=namespace), None, None)


def owners(build):
    return lambda s: {"metadata": {"ownerReferences": build(s)}}


EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}
HOOK = config_map("kube-system") | {"metadata": {"name": CONFIG_MAP}}

REFUSED = {
    "create a pod that nobody owns": creates("pods", lambda s: pod("new")),
    "create a pod of another controller": creates("pods", lambda s: pod("new", s.other)),
    "create a pod that an MXJob owns and doesn't control": creates(
        "pods", lambda s: pod("new", {**s.owner, "controller": False})
    ),
    "create a pod that an MXJob owns and another controls": creates(
        "pods", lambda s: pod("new", {**s.owner, "controller": False}, s.other)
    ),
    "create a pod of an MXJob of a foreign group": creates(
        "pods", lambda s: pod("new", owner(api_version="kubeflow.org.example/v1"))
    ),
    "create a pod of another kind of Kubeflow": creates("pods", lambda s: pod("new", owner(kind="TFJob"))),
    "create a pod of an MXJob in kube-public": creates("pods", lambda s: pod("new", s.owner), "kube-public"),
    "make a pod of nobody a job's": changes("pods", "bare", owners(lambda s: [s.owner])),
    "make a pod of another controller a job's": changes("pods", "replica", owners(lambda s: [s.owner])),
    "take control of a pod that an MXJob only owns": changes("pods", "bystander", owners(lambda s: [s.owner])),
    "end a pod of nobody": changes("pods", "bare", lambda s: {"spec": {"activeDeadlineSeconds": 1}}),
    "label a pod of nobody": changes("pods", "bare", lambda s: {"metadata": {"labels": {"a": "b"}}}),
    "label a pod of a job": changes("pods", "ours", lambda s: {"metadata": {"labels": {"a": "b"}}}),
    "take a label from a pod of a job": changes("pods", "ours", lambda s: {"metadata": {"labels": {"app": None}}}),
    "give a pod of a job to nobody": changes("pods", "ours", owners(lambda s: None)),
    "give a pod of a job to another controller": changes("pods", "ours", owners(lambda s: [s.other])),
    "give a pod of a job to another job": changes("pods", "ours", owners(lambda s: [owner("other", "1")])),
    "change the image of a job's pod": changes(
        "pods", "ours", lambda s: [{"op": "replace", "path": "/spec/containers/0/image", "value": "other"}], JSON_PATCH
    ),
    "delete a pod of nobody": deletes("pods", "bare"),
    "delete a pod that an MXJob owns and doesn't control": deletes("pods", "bystander"),
    "evict a pod of nobody": lambda s: (
        "POST",
        s.path("pods", "bare/eviction"),
        {**EVICTION, "metadata": {"name": "bare"}},
        None,
    ),
    "evict a pod of a job": lambda s: (
        "POST",
        s.path("pods", "ours/eviction"),
        {**EVICTION, "metadata": {"name": "ours"}},
        None,
    ),
    "place a pod": lambda s: (
        "POST",
        s.path("pods", "bare/binding"),
        {"metadata": {"name": "bare"}, "target": {"kind": "Node", "name": "n"}},
        None,
    ),
    "write the status of a job's pod": changes("pods", "ours/status", lambda s: {"status": {"phase": "Succeeded"}}),
    "add a container to a job's running pod": changes(
        "pods",
        "ours/ephemeralcontainers",
        lambda s: {"spec": {"ephemeralContainers": [{"name": "x", "image": "i", "terminationMessagePolicy": "File"}]}},
    ),
    "run a command in a job's pod": lambda s: (
        "POST",
        s.path("pods", "ours/exec?command=id&container=mxnet"),
        None,
        None,
    ),
    "create a Service that nobody owns": creates("services", lambda s: service("new")),
    "create a Service of another controller": creates("services", lambda s: service("new", s.other)),
    "create a Service of a job with an address": creates("services", lambda s: service("new", s.owner, clusterIP="")),
    "create a Service of a job for the outside": creates(
        "services", lambda s: service("new", s.owner, clusterIP="", type="LoadBalancer")
    ),
    "create a Service of a job that is another's name": creates(
        "services", lambda s: {**service("new", s.owner), "spec": {"type": "ExternalName", "externalName": "a.example"}}
    ),
    "create a Service of a job in kube-system": creates("services", lambda s: service("new", s.owner), "kube-system"),
    "change a Service of nobody": changes("services", "theirs", lambda s: {"metadata": {"labels": {"a": "b"}}}),
    "change a Service of a job": changes("services", "ours", lambda s: {"metadata": {"labels": {"a": "b"}}}),
    "make a Service of nobody a job's": changes("services", "theirs", owners(lambda s: [s.owner])),
    "delete a Service of nobody": deletes("services", "theirs"),
    "delete Kubernetes' own Service": deletes("services", "kubernetes", "default"),
    "create a ConfigMap": creates("configmaps", lambda s: {"metadata": {"name": "new"}}),
    "create a ConfigMap of a job": creates(
        "configmaps", lambda s: {"metadata": {"name": "new", "ownerReferences": [s.owner]}}
    ),
    "create a hook that can be changed": creates(
        "configmaps", lambda s: {"metadata": {"name": f"{CONFIG_MAP}-2"}, "data": {}}
    ),
    "create a hook in kube-system": creates("configmaps", lambda s: HOOK, "kube-system"),
    "change a ConfigMap": changes("configmaps", "theirs", lambda s: {"data": {"a": "c"}}),
    "delete a ConfigMap": deletes("configmaps", "theirs"),
    "delete the hook": deletes("configmaps", CONFIG_MAP),
}


async def stored(admin, world):
    """What there is of all that the policies are about, in the world and elsewhere."""
    found = {}
    for resource in ("pods", "services", "configmaps"):
        for namespace in (world.namespace, "kube-system", "kube-public", "default"):
            for each in (await admin.get(world.path(resource, namespace=namespace))).ok()["items"]:
                metadata = each["metadata"]
                # Other programs write into the ConfigMap of the cluster's authentication meanwhile.
                seen = {} if namespace.startswith("kube-") else {key: each.get(key) for key in ("spec", "data")}
                kept = {key: metadata.get(key) for key in ("uid", "labels", "ownerReferences")}
                found[resource, namespace, metadata["name"]] = (kept, seen)
    return found


async def sent(api, request):
    method, path, body, content_type = request
    return await api.ask(method, path, body, content_type=content_type or "application/json")


def refused_by_a_policy(answer, deed=""):
    assert answer.code == 403, (deed, answer.text)
    assert "ValidatingAdmissionPolicy 'mxnet-operator-" in answer.body["message"], deed
    assert "the MXJob controller" in answer.body["message"], deed


async def test_the_controllers_token_cannot_do_what_is_listed(admin, controller, untouched):
    before = await stored(admin, untouched)
    for deed, request in REFUSED.items():
        refused_by_a_policy(await sent(controller, request(untouched)), deed)
    assert await stored(admin, untouched) == before


@pytest.mark.parametrize("selector", ["", "app in (bare,ours)"])
async def test_the_controllers_token_cannot_delete_a_collection_that_has_a_pod_of_another(
    selector, admin, controller, world
):
    refused_by_a_policy(await controller.delete(world.path("pods"), labelSelector=selector))
    left = {each["metadata"]["name"] for each in (await admin.get(world.path("pods"))).ok()["items"]}
    assert {"bare", "replica", "bystander"} <= left


async def test_who_is_not_the_controller_is_not_bound_by_its_policies(admin, untouched):
    for deed, request in REFUSED.items():
        method, path, body, content_type = request(untouched)
        path += ("&" if "?" in path else "?") + "dryRun=All"
        answer = await sent(admin, (method, path, body, content_type))
        assert "ValidatingAdmissionPolicy" not in answer.text, deed


@pytest.mark.parametrize("job_format", ["v1", "mxnetjob", "fioravanzo", "mlkube"])
async def test_the_controllers_token_can_start_stop_and_delete_the_children_of_each_kind_of_job(
    job_format, admin, controller, world
):
    if job_format == "v1":
        reference = world.owner
    else:
        kind = kind_of_format(job_format)
        made = (await admin.post(resource_of(kind).path(world.namespace), older_job(job_format, job_format))).ok()
        reference = owner(job_format, made["metadata"]["uid"], api_version=kind.api_version, kind=kind.kind)
    (await controller.post(world.path("services"), service("new", reference))).ok()
    (await controller.post(world.path("pods"), pod("new", reference))).ok()
    (await controller.merge(world.path("pods", "new"), {"spec": {"activeDeadlineSeconds": 1}})).ok()
    put_back = {names.LABEL_OPERATOR_NAME: names.OPERATOR_NAME, names.LABEL_ATTEMPT: "1"}
    (await controller.merge(world.path("pods", "new"), {"metadata": {"labels": put_back}})).ok()
    (await controller.delete(world.path("pods", "new"))).ok()
    (await controller.delete(world.path("services", "new"))).ok()
    (await admin.delete(world.path("configmaps", CONFIG_MAP))).ok()
    (await controller.post(world.path("configmaps"), config_map(world.namespace))).ok()


async def test_a_collection_is_deleted_where_all_of_it_is_a_jobs(admin, controller, world):
    labelled = pod("labelled", world.owner)
    labelled["metadata"]["labels"] = {names.LABEL_JOB_NAME: "digits"}
    (await admin.post(world.path("pods"), labelled)).ok()
    (await controller.delete(world.path("pods"), labelSelector=f"{names.LABEL_JOB_NAME}=digits")).ok()
    left = {each["metadata"]["name"] for each in (await admin.get(world.path("pods"))).ok()["items"]}
    assert left == {"ours", "bare", "replica", "bystander"}


async def test_a_controller_in_another_namespace_is_bound_by_the_same_policies(server, admin, world):
    """The namespaced mode: its account has the same name, wherever it is."""
    account = {"metadata": {"name": "mxnet-operator"}}
    (await admin.post(world.path("serviceaccounts"), account)).ok()
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    subject = {"kind": "ServiceAccount", "name": "mxnet-operator", "namespace": world.namespace}
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{world.namespace}/rolebindings"
    (await admin.post(bindings, {"metadata": {"name": "all"}, "roleRef": role, "subjects": [subject]})).ok()
    there = [{"kind": "ServiceAccount", "metadata": {"name": "mxnet-operator", "namespace": world.namespace}}]
    team = Api(admin.session, admin.base, token_of(server, there))
    async with asyncio.timeout(SECONDS):
        while (answer := await team.delete(world.path("pods", "bare"))).code == 403 and "RBAC" in answer.text:
            pass  # until the API server has seen the binding
    assert "ValidatingAdmissionPolicy 'mxnet-operator-pods'" in answer.body["message"]
    (await team.delete(world.path("pods", "ours"))).ok()


async def test_kubernetes_finds_no_fault_with_the_expressions(admin):
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    async with asyncio.timeout(SECONDS):
        for name in POLICIES:
            while "typeChecking" not in (policy := (await admin.get(f"{path}/{name}")).ok()).get("status", {}):
                pass  # until kube-controller-manager has looked at it
            assert policy["status"]["typeChecking"] == {}, json.dumps(policy["status"], indent=1)
