"""The controller as its own ServiceAccount on an RBAC-enabled server: its rules are what it asks for.

Tests that need the server as it was before others stand first, and those whose definitions stay on it last.
"""

import asyncio
import json
import secrets
import tempfile
from pathlib import Path

import msgspec
import pytest
import yaml
from apiserver_objects import binding
from audit import Right, granted, requests_of
from builders import make_mxjob
from control_plane import control_plane
from control_plane_fixtures import real_api
from controller_fixtures import EVENTS, JOBS, PODS, SERVICES, ControllerWorld, submitted
from deployment import (
    MANIFESTS,
    Administrator,
    of_kind,
    one,
    policies_in_force,
    rendered,
    roles_of_controller,
    started,
    user_name,
)
from gangs import NATIVE_GATES, NATIVE_GROUPS, NATIVE_WORKLOADS
from kubernetes_programs import CONTROL_PLANE, programs_or_skip
from left_overs import folder_prefix
from older_jobs import kind_of_format, older_job
from waiting import SECONDS

from mxnet_operator.api import names
from mxnet_operator.api.job_lease import JobLease, annotations_of
from mxnet_operator.api.kinds import ALL, LEGACY
from mxnet_operator.builders.fail_fast import CONFIG_MAP
from mxnet_operator.client.resources import resource_of
from mxnet_operator.integrations.gangs import coscheduling
from mxnet_operator.integrations.gangs.gang import unique_group_name

pytestmark = pytest.mark.kubernetes

ADMISSION = "OwnerReferencesPermissionEnforcement"
LARGE = {"example.com/large": secrets.token_hex(40_000)}
"""More than the controller keeps of a job, compressed too."""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
FOR_ALL_NAMESPACES = [f"-f={MANIFESTS / 'base' / name}" for name in ("crd.yaml", "admission.yaml")]
"""What an administrator installs for the namespaced mode."""
NODE = "node"
NODES = Right("", "nodes", "get")
"""Nodes are in no namespace: a controller for one asks after that of a pod that won't go, and takes a no."""
FOR_ADMISSION = {Right(kind.group, f"{kind.plural}/finalizers", "update") for kind in ALL}
"""Asked by an admission plugin within the server, never by a request: the audit log can't show it."""


@pytest.fixture(scope="module")
def server():
    """A control plane that checks owner references as OpenShift's does.

    It streams no lists, as servers before 1.32: there the controller needs `list` besides `watch`. It has native pod
    groups, so that the rights on them are used.
    """
    paths = programs_or_skip(CONTROL_PLANE)
    with tempfile.TemporaryDirectory(prefix=folder_prefix()) as name:
        flags = {
            "enable_admission_plugins": ADMISSION,
            "feature_gates": f"WatchList=false,{NATIVE_GATES}",
            "runtime_config": "scheduling.k8s.io/v1alpha2=true",
        }
        protection = {"feature_gates": "GenericWorkload=true"}
        with control_plane(paths, Path(name), [], controller_manager=protection, **flags) as running:
            yield running


@pytest.fixture
def ask(server):
    """kubectl as the administrator; returns what it prints."""
    return Administrator(server)


@pytest.fixture(scope="module")
def installed(server):
    """Installs an overlay as an administrator would, beside what other tests have installed; each of them once.

    None is uninstalled: a definition takes the server as long as a test to make, and longer to delete.
    """
    done = set()

    async def install(overlay):
        objects = rendered(overlay)
        if overlay not in done:
            ask = Administrator(server)
            if overlay == "namespaced":
                await ask("apply", *FOR_ALL_NAMESPACES)
            await ask("apply", "-k", MANIFESTS / "overlays" / overlay)
            done.add(overlay)
            crds = ("crd/mxjobs.kubeflow.org", "crd/mxnetjobs.kubeflow.org")
            await ask.wait("condition=Established", *crds)
            await policies_in_force(server, objects)
            await until_owners_are_known(server, objects)
        return objects

    return install


async def until_owners_are_known(server, objects):
    """Wait until the admission plugin knows all kinds of jobs, for up to half a minute: the controller would pause."""
    config = {"metadata": {"name": "owned"}}
    async with real_api(server) as api, asyncio.timeout(SECONDS):
        # Not with its token: what it asks for itself is what its rights are compared with.
        asked = {"headers": {"Impersonate-User": user_name(objects)}, "dryRun": "All"}
        for crd in (each["spec"] for each in of_kind(objects, "CustomResourceDefinition")):
            kind = {"apiVersion": f"{crd['group']}/{crd['versions'][0]['name']}", "kind": crd["names"]["kind"]}
            config["metadata"]["ownerReferences"] = [{**kind, "name": "any", "uid": "any", "blockOwnerDeletion": True}]
            while "cannot find RESTMapping" in (await api.ask("POST", CONFIG_MAPS, config, **asked)).text:  # noqa: ASYNC110
                await asyncio.sleep(0.5)


@pytest.fixture
async def world(server):
    """The administrator's access, with which a test plays scheduler and kubelet; what it makes goes at the end.

    There is a node to bind pods to: Kubernetes deletes those whose node it has missed for 40 s, at any moment then.
    """
    async with real_api(server) as api:
        (await api.post("/api/v1/nodes", {"metadata": {"name": NODE}})).ok()
        yield ControllerWorld(api, None, server.kubeconfig())
        for path in (JOBS, PODS, EVENTS):
            (await api.delete(path, {"gracePeriodSeconds": 0})).ok()
        for service in (await api.get(SERVICES, labelSelector=names.LABEL_JOB_NAME)).ok()["items"]:
            (await api.delete(f"{SERVICES}/{service['metadata']['name']}")).ok()
        # It outlives its jobs, and its making is a right to be seen.
        await api.delete(f"{CONFIG_MAPS}/{CONFIG_MAP}")
        (await api.delete(f"/api/v1/nodes/{NODE}")).ok()


async def start_on_a_node(world, pods):
    """Say what scheduler and kubelet would."""
    for name in pods:
        (await world.api.post(world.path(f"{PODS}/{name}/binding"), binding(name, NODE))).ok()
    await world.move(pods, "Running")


async def gone(world, path, name):
    """Wait until an object that existed does so no more."""
    await world.eventually(path, lambda found: name not in found)


async def squat(world, path, manifest):
    """Make an object whose name a job needs."""
    (await world.api.post(path, manifest)).ok()


def container():
    return {"name": "mxnet", "image": "i"}


async def a_job_whose_names_are_taken(world):
    """Another's Service is in the way, then another's pod; both go, and the job goes on."""
    service = {"metadata": {"name": "taken-mx"}, "spec": {"ports": [{"port": 80}]}}
    pod = {"metadata": {"name": "taken-worker-0"}, "spec": {"containers": [container()]}}
    await squat(world, SERVICES, service)
    await squat(world, PODS, pod)
    await world.submit(submitted(make_mxjob("taken").worker(1)))
    await world.event("FailedCreateService", says="exists already")
    (await world.api.delete(f"{SERVICES}/taken-mx")).ok()
    await world.event("FailedCreatePod", says="exists already")
    (await world.api.delete(f"{PODS}/taken-worker-0", {"gracePeriodSeconds": 0})).ok()
    await world.eventually(PODS, lambda pods: "ownerReferences" in pods.get("taken-worker-0", {}).get("metadata", {}))


async def a_job_that_fails(world):
    """One worker fails; of the others one runs, and is stopped, and one was never placed, and is deleted."""
    await world.submit(submitted(make_mxjob("fails").worker(3, command=["python", "train.py"])))
    await world.eventually(PODS, lambda pods: all(f"fails-worker-{index}" in pods for index in range(3)))
    await start_on_a_node(world, ["fails-worker-0", "fails-worker-1"])
    await world.move(["fails-worker-0"], "Failed", exit_code=1)
    await world.state("fails", "Failed")
    await gone(world, PODS, "fails-worker-2")
    one_of_them = "fails-worker-1"
    await world.eventually(
        PODS, lambda pods: pods.get(one_of_them, {"spec": {}})["spec"].get("activeDeadlineSeconds") == 1
    )


async def a_job_that_is_cleaned_up(world):
    """Its pods and Services go when it has succeeded, and then so does the job."""
    await world.submit(submitted(make_mxjob("done").worker(1).run_policy(cleanPodPolicy="All")))
    await world.eventually(PODS, lambda pods: "done-worker-0" in pods)
    await world.move(["done-worker-0"], "Running")
    await world.move(["done-worker-0"], "Succeeded", exit_code=0)
    await gone(world, PODS, "done-worker-0")
    await gone(world, SERVICES, "done-mx")
    # Only now, or the job might go before its Service is cleaned up.
    (await world.api.merge(f"{JOBS}/done", {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}})).ok()
    await gone(world, JOBS, "done")


async def a_job_whose_pod_does_not_go(world):
    """A pod of a suspended job is deleted, and no kubelet confirms its end."""
    job = make_mxjob("lost").worker(1).template("Worker", terminationGracePeriodSeconds=1)
    await world.submit(submitted(job))
    await world.eventually(PODS, lambda pods: "lost-worker-0" in pods)
    await start_on_a_node(world, ["lost-worker-0"])
    (await world.api.merge(f"{JOBS}/lost", {"spec": {"runPolicy": {"suspend": True}}})).ok()

    def looked_for(jobs):
        conditions = jobs.get("lost", {}).get("status", {}).get("conditions", ())
        return any(each["type"] == "PodsTerminating" for each in conditions)

    await world.eventually(JOBS, looked_for)


async def a_large_job_whose_lease_runs_out(world):
    """Its holder is gone, and wished it to be suspended then."""
    job = submitted(make_mxjob("leased").worker(1))
    lease = annotations_of(JobLease(duration=1, action="suspend", holder="nobody", renewed="once"))
    job["metadata"]["annotations"] = {**lease, **LARGE}
    await world.submit(job)
    await world.eventually(JOBS, lambda jobs: jobs["leased"]["spec"].get("runPolicy", {}).get("suspend"))
    await world.state("leased", "Suspended")


async def a_job_of_a_workflow(world):
    """It asks whether that is over, though there is no Argo."""
    await world.submit(job_of_workflow("argos", "0"))
    await world.eventually(PODS, lambda pods: "argos-worker-0" in pods)
    (await world.api.delete(f"{JOBS}/argos")).ok()
    await gone(world, PODS, "argos-worker-0")


async def a_gang_whose_groups_name_is_taken_and_whose_size_changes(world):
    """Another's objects are in the way and go; then the waiting gang's own group is replaced, and goes with its job."""
    version = "scheduling.k8s.io/v1alpha2"
    policy = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    workload = {"podGroupTemplates": [{"name": "all", **policy}]}
    paths = {"Workload": (NATIVE_WORKLOADS, workload), "PodGroup": (NATIVE_GROUPS, policy)}
    for kind, (path, spec) in paths.items():
        await squat(world, path, {"apiVersion": version, "kind": kind, "metadata": {"name": "grouped"}, "spec": spec})
    await world.submit(submitted(make_mxjob("grouped").worker(2)))
    for kind, (path, _) in paths.items():
        await world.event(f"FailedCreate{kind}", says="exists already")
        (await world.api.delete(f"{path}/grouped")).ok()
    before = await world.eventually(NATIVE_GROUPS, is_owned)
    await world.eventually(PODS, lambda pods: "grouped-worker-1" in pods)
    smaller = {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}}}
    (await world.api.merge(f"{JOBS}/grouped", smaller)).ok()
    uid = before["grouped"]["metadata"]["uid"]
    await world.eventually(NATIVE_GROUPS, lambda found: is_owned(found) and found["grouped"]["metadata"]["uid"] != uid)
    (await world.api.delete(f"{JOBS}/grouped")).ok()
    await gone(world, NATIVE_GROUPS, "grouped")


def is_owned(groups):
    return "ownerReferences" in groups.get("grouped", {}).get("metadata", {})


async def a_job_of_a_kind(world, job_format):
    """A job of an older kind, which has no more rights than its jobs take; larger than what is kept in memory."""
    manifest = older_job(job_format, job_format)
    manifest["metadata"]["annotations"] = {**manifest["metadata"].get("annotations", {}), **LARGE}
    path = resource_of(kind_of_format(job_format)).path("default")
    await world.submit(manifest, path)
    await world.eventually(PODS, lambda pods: f"{job_format}-worker-1" in pods)
    await world.eventually(path, lambda jobs: jobs.get(job_format, {}).get("status", {}).get("state") == "Created")
    (await world.api.delete(f"{path}/{job_format}")).ok()
    await gone(world, PODS, f"{job_format}-worker-1")


@pytest.mark.exhaustive
async def test_who_may_edit_or_view_a_namespace_may_do_so_with_its_mxjobs(installed, world, ask):
    await installed("standalone")
    for role in ("edit", "view"):
        await ask("-n", "default", "create", "rolebinding", f"may-{role}", f"--clusterrole={role}", f"--user={role}")

    def aggregated(found):
        return all("mxjobs" in str(found.get(role, {}).get("rules")) for role in ("edit", "view", "admin"))

    await world.eventually(CLUSTER_ROLES, aggregated)
    may = ["auth", "can-i", "-n", "default"]
    assert await ask(*may, "create", "mxjobs.kubeflow.org", "--as=edit") == "yes\n"
    assert await ask(*may, "watch", "mxjobs.kubeflow.org", "--as=view") == "yes\n"
    assert await ask(*may, "create", "mxjobs.kubeflow.org", "--as=view", fails=True) == "no\n"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "file",
    [
        MANIFESTS / "components" / "network-policy" / "network-policy.yaml",
        MANIFESTS.parents[1] / "examples" / "network-policy" / "jobs.yaml",
    ],
    ids=lambda file: file.stem,
)
async def test_the_api_server_accepts_each_network_policy(file, server):
    policy = yaml.safe_load(file.read_text())
    policy["metadata"].pop("namespace", None)
    path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
    async with real_api(server) as api:
        (await api.post(path, policy, dryRun="All", fieldValidation="Strict")).ok()


@pytest.mark.exhaustive
async def test_the_administrator_of_a_namespace_can_install_the_namespaced_overlay(world, ask):
    """With what docs/install.md says: the CRD and the roles for people, and three rights that `admin` lacks."""
    base = MANIFESTS / "base"
    overlay = MANIFESTS / "overlays" / "namespaced"
    await ask("apply", "-f", base / "crd.yaml")
    await ask("apply", "-f", base / "rbac.yaml", "--selector=app.kubernetes.io/component=user-roles")
    grant = ["--namespace=default", "create"]
    await ask(*grant, "rolebinding", "alice-admin", "--clusterrole=admin", "--user=alice")
    await world.eventually(CLUSTER_ROLES, lambda found: "mxjobs" in str(found.get("admin", {}).get("rules")))
    assert "is attempting to grant RBAC permissions" in await ask("apply", "-k", overlay, "--as=alice", fails=True)
    for name, verb, part in (("alice-status", "patch", "status"), ("alice-finalizers", "update", "finalizers")):
        resources = f"mxjobs.kubeflow.org/{part},mxnetjobs.kubeflow.org/{part}"
        await ask(*grant, "role", name, f"--verb={verb}", f"--resource={resources}")
        await ask(*grant, "rolebinding", name, f"--role={name}", "--user=alice")
    # kubectl makes no role for a resource that isn't there, as Argo's are not here.
    reads_workflows = {"apiGroups": ["argoproj.io"], "resources": ["workflows"], "verbs": ["get"]}
    role = {"metadata": {"name": "alice-workflows"}, "rules": [reads_workflows]}
    (await world.api.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", role)).ok()
    await ask(*grant, "rolebinding", "alice-workflows", "--role=alice-workflows", "--user=alice")
    assert "deployment.apps/mxnet-operator" in await ask("apply", "-k", overlay, "--as=alice")
    await ask("delete", "-k", overlay, "--as=alice")


@pytest.mark.sampled
@pytest.mark.parametrize("overlay", ["standalone", "namespaced"])
async def test_the_controller_may_do_what_it_asks_for_and_asks_for_all_that_it_may_do(
    server, installed, world, overlay, tmp_path
):
    objects = await installed(overlay)
    with started(server, objects, tmp_path):
        await a_job_whose_names_are_taken(world)
        await a_job_that_fails(world)
        await a_job_that_is_cleaned_up(world)
        await a_job_whose_pod_does_not_go(world)
        await a_large_job_whose_lease_runs_out(world)
        await a_job_of_a_workflow(world)
        await a_gang_whose_groups_name_is_taken_and_whose_size_changes(world)
        await a_job_of_a_kind(world, "mxnetjob")

    requests = requests_of(server, user_name(objects))
    refused = [request for request in requests if request.code in {401, 403}]
    requests = [request for request in requests if request not in refused]
    granted_later = {request.right for request in requests}  # for seconds, the admission plugin knows no new kind
    assert {request.right for request in refused} - granted_later == ({NODES} if overlay == "namespaced" else set())
    rights = granted(roles_of_controller(objects)) - FOR_ADMISSION
    asked = {request.right for request in requests}
    assert {"needless": sorted(map(str, rights - asked)), "missing": sorted(map(str, asked - rights))} == {
        "needless": [],
        "missing": [],
    }
    if overlay == "namespaced":
        assert {request.namespace for request in requests} == {one(objects, "ServiceAccount")["metadata"]["namespace"]}


@pytest.mark.exhaustive
async def test_the_overlay_legacy_adds_the_rights_that_its_kinds_take(server, installed, world, tmp_path):
    objects = await installed("legacy")
    with started(server, objects, tmp_path):
        await a_job_of_a_kind(world, "fioravanzo")
        await a_job_of_a_kind(world, "mlkube")
    added = granted(roles_of_controller(objects)) - granted(roles_of_controller(rendered("standalone")))
    groups = {kind.group for kind in LEGACY}
    requests = [each for each in requests_of(server, user_name(objects)) if each.right.group in groups]
    assert {each.right for each in requests if each.code not in {401, 403}} == added - FOR_ADMISSION
    assert {each.group for each in added} == groups


ARGO = "/apis/argoproj.io/v1alpha1/namespaces/default"
REPORTED = "workflows.argoproj.io/report-outputs-completed"
ARGO_KINDS = {"workflows": "Workflow", "workflowtaskresults": "WorkflowTaskResult"}


def definition(plural, kind, group="argoproj.io"):
    """A CRD without its schema: one of Argo's, unless another group is named."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names_ = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names_, "scope": "Namespaced", "versions": [version]},
    }


@pytest.mark.exhaustive
async def test_with_the_component_for_argo_dead_pollers_results_are_completed_and_without_it_it_is_said(
    server, installed, world, ask, tmp_path
):
    """No Argo: a workflow is shut down if its spec says so, and a poller is a pod as Argo 4.1.2 leaves it."""
    objects = await installed("standalone")
    component = MANIFESTS / "components" / "argo"
    rights = component / "rbac.yaml"
    crds = tmp_path / "crds.json"
    crds.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [definition(*each) for each in ARGO_KINDS.items()]})
    )
    await ask("create", "-f", crds)
    await ask.wait("condition=Established", *(f"crd/{each}.argoproj.io" for each in ARGO_KINDS))
    with started(server, objects, tmp_path):
        await goes_with_a_workflow(world, "shut-down", {"shutdown": "Terminate"})
        told = await world.event("WorkflowOver")
        assert told["involvedObject"]["name"] == "shut-down"
        await gone(world, JOBS, "shut-down")

        await its_poller_is_dead(world, "first")
        forbidden = await world.event("PollerForbidden")
        assert "cannot get resource" in forbidden["message"]
        await ask("apply", "-f", rights)
        as_controller = f"--as={user_name(objects)}"
        assert "yes" in await ask("auth", "can-i", "patch", "workflowtaskresults.argoproj.io/second", as_controller)
        await its_poller_is_dead(world, "second")
        told = await world.event("PollerReplaced")
        assert told["involvedObject"]["name"] == "second"
        results = (await world.api.get(f"{ARGO}/workflowtaskresults")).ok()["items"]
        assert {each["metadata"]["name"]: each["metadata"]["labels"][REPORTED] for each in results} == {
            "first-node": "false",
            "second-node": "true",
        }
    asked = {each.right for each in requests_of(server, user_name(objects)) if each.right.group == "argoproj.io"}
    assert asked - {Right("argoproj.io", "workflows", "get")} == granted(of_kind(rendered(component), "ClusterRole"))


@pytest.mark.exhaustive
async def test_the_component_for_scheduler_plugins_gives_the_rights_that_its_groups_take(
    server, installed, world, ask, tmp_path
):
    """No scheduler-plugins: its definition, and a gang that is rejected for half a minute."""
    objects = await installed("standalone")
    component = MANIFESTS / "components" / "coscheduling"
    crd = tmp_path / "crd.json"
    crd.write_text(json.dumps(definition("podgroups", "PodGroup", coscheduling.POD_GROUP.group)))
    await ask("create", "-f", crd)
    await ask.wait("condition=Established", f"crd/{coscheduling.POD_GROUP}")
    await ask("apply", "-f", component / "rbac.yaml")
    path, group = coscheduling.POD_GROUP.path("default"), coscheduling.POD_GROUP.group
    uid = (await world.submit(submitted(make_mxjob("tried").worker(2))))["metadata"]["uid"]
    job = make_mxjob("tried").obj()
    name = unique_group_name(msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, uid=uid)))
    kind = {"apiVersion": f"{group}/v1alpha1", "kind": "PodGroup"}
    await squat(world, path, {**kind, "metadata": {"name": name}})
    (container_,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    container_["args"].append("--gang-scheduling=coscheduling")
    with started(server, objects, tmp_path):
        await world.event("FailedCreatePodGroup", says="exists already")
        (await world.api.delete(f"{path}/{name}")).ok()
        rejected = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "rejected"}
        pods = await world.eventually(PODS, lambda pods: "tried-worker-0" in pods and "tried-worker-1" in pods)
        for each in pods:
            (await world.api.merge(f"{PODS}/{each}/status", {"status": {"conditions": [rejected]}})).ok()
        await world.eventually(path, lambda groups: names.TOUCHED_ANNOTATION in str(groups.get(name)))
        (await world.api.merge(f"{JOBS}/tried", {"spec": {"runPolicy": {"suspend": True}}})).ok()
        await gone(world, path, name)
    asked = {each.right for each in requests_of(server, user_name(objects)) if each.right.group == group}
    assert asked == granted(of_kind(rendered(component), "ClusterRole"))


async def goes_with_a_workflow(world, name, spec):
    """A workflow, and its job of the same name."""
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": spec}
    made = (await world.api.post(f"{ARGO}/workflows", workflow)).ok()
    await world.submit(job_of_workflow(name, made["metadata"]["uid"]))


def job_of_workflow(name, uid):
    job = submitted(make_mxjob(name).worker(1))
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": name, "uid": uid}
    job["metadata"]["ownerReferences"] = [owner]
    job["metadata"]["annotations"] = {names.DELETE_WITH_WORKFLOW_ANNOTATION: "true"}
    job["metadata"]["labels"] = {"workflows.argoproj.io/workflow": name}
    return job


async def its_poller_is_dead(world, name):
    """A workflow that runs, whose step's pod was killed, and the result that Argo then waits for."""
    node, pod = f"{name}-node", f"{name}-poller"
    result = {"metadata": {"name": node, "labels": {REPORTED: "false"}}}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult"}
    (await world.api.post(f"{ARGO}/workflowtaskresults", {**kind, **result})).ok()
    labels = {"workflows.argoproj.io/workflow": name, "workflows.argoproj.io/completed": "false"}
    metadata = {"name": pod, "labels": labels, "annotations": {"workflows.argoproj.io/node-id": node}}
    (await world.api.post(PODS, {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "i"}]}})).ok()
    (await world.api.merge(f"{PODS}/{pod}/status", {"status": {"phase": "Failed"}})).ok()
    await goes_with_a_workflow(world, name, {})
