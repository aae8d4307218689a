"""Volcano's group of a gang, and its pods, as a real API server takes them by the schema of Volcano's own types.

No Volcano runs here: its module can't be had, its types can. Where it would act, the test plays it.
"""

import subprocess

import pytest
import yaml
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, ControllerWorld, RecordingClient, submitted
from kubernetes_programs import VOLCANO, programs_or_skip

from mxnet_operator.api import names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.validation import decode
from mxnet_operator.builders import build_pod
from mxnet_operator.integrations.gangs import backends_of, gangs
from mxnet_operator.integrations.gangs.gang import gang_of
from mxnet_operator.kube.credentials import load_credentials

pytestmark = [pytest.mark.exhaustive, pytest.mark.kubernetes("controller-gen")]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
GPU = {"limits": {names.GPU: 1}}
ALL_OF_A_POLICY = {
    "minAvailable": 5,
    "queue": "team-a",
    "priorityClass": "high",
    "minResources": {"cpu": "1500m", "memory": "1.5Gi", names.GPU: 4},
    "scheduleTimeoutSeconds": 60,
}
BUILDERS = {
    "a gang": make_mxjob("gang").gang(),
    "GPUs": make_mxjob("gpus").scheduler().server(2).worker(7, resources=GPU),
    "parts of a GPU": make_mxjob("mig").worker(2, resources={"limits": {"nvidia.com/mig-1g.5gb": 2}}),
    "fractions": make_mxjob("fractions").worker(3, resources={"requests": {"cpu": "100m", "memory": "1.5Gi"}}),
    "every field of a policy": make_mxjob("all").gang(2, 4).run_policy(schedulingPolicy=ALL_OF_A_POLICY),
    "resources as numbers": make_mxjob("numbers").gang().run_policy(schedulingPolicy={"minResources": {"cpu": 2}}),
    "a class of the templates": make_mxjob("class").worker(2).template("Worker", priorityClassName="high"),
    "a lone pod that asks for a group": make_mxjob("lone").worker(1).run_policy(schedulingPolicy={}),
    "a tuning": make_mxjob("tuning").replicas("TunerTracker", 1).replicas("TunerServer", 2).replicas("Tuner", 1),
}


@pytest.fixture(scope="module", autouse=True)
def schema(kubernetes, tmp_path_factory):
    """The CRD of PodGroup, made from Volcano's types as Volcano's own build makes it."""
    out = tmp_path_factory.mktemp("volcano")
    command = [
        programs_or_skip(["controller-gen"])["controller-gen"],
        "crd",
        "paths=volcano.sh/apis/pkg/apis/scheduling/v1beta1",
        f"output:crd:dir={out}",
    ]
    done = subprocess.run(command, cwd=VOLCANO.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    crd = yaml.safe_load((out / "scheduling.volcano.sh_podgroups.yaml").read_text())
    made = kubernetes.ask("POST", CRDS, crd)
    kubernetes.programs.wait("Volcano's PodGroup", lambda: kubernetes.ask("GET", GROUPS))
    yield
    kubernetes.ask("DELETE", f"{CRDS}/{made['metadata']['name']}")


@pytest.fixture
async def namespace(namespace, api):
    """With the class that jobs of the table name."""
    answer = await api.post(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 1000})
    assert answer.code in (201, 409), answer.text
    return namespace


async def stored_job(api, namespace, case):
    """A job of the table as the controller has it, from the server."""
    answer = await posted(api, namespace, JOBS, submitted(BUILDERS[case]))
    return with_defaults(decode(answer.ok()))


async def posted(api, namespace, path, manifest, **query):
    """The answer to a creation that refuses what the schema doesn't have."""
    mine = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
    return await api.post(path.replace("/default/", f"/{namespace}/"), mine, fieldValidation="Strict", **query)


@pytest.mark.parametrize("case", BUILDERS)
async def test_the_group_and_the_pods_of_a_job_are_stored_whole(api, namespace, case):
    (backend,) = backends_of("volcano")
    job = await stored_job(api, namespace, case)
    gang = gang_of(job)
    (group,) = backend.objects(job, gang)
    stored = (await posted(api, namespace, GROUPS, group)).ok()
    assert stored["spec"] == group["spec"]
    kept = ("name", "labels", "annotations", "ownerReferences")
    assert {key: stored["metadata"][key] for key in kept} == {key: group["metadata"][key] for key in kept}
    for replica_type in job.spec.specs_in_use:
        pod = backend.decorate(job, gang, build_pod(job, replica_type, 0, 0))
        stored = (await posted(api, namespace, PODS, pod, dryRun="All")).ok()
        assert stored["metadata"]["annotations"] == pod["metadata"]["annotations"]
        assert stored["spec"]["schedulerName"] == "volcano"
        assert stored["spec"].get("priorityClassName", "") == gang.priority_class


async def test_a_job_waits_until_its_group_is_admitted_says_so_and_its_group_goes_with_it(kubernetes, api, namespace):
    async with RecordingClient(load_credentials(str(kubernetes.kubeconfig("controller")))) as client:
        world = ControllerWorld(api, client, kubernetes.kubeconfig("controller"), namespace)
        await world.start(integrations=[gangs("volcano")])
        try:
            await world.submit(submitted(make_mxjob("digits").gang()))
            group = (await world.eventually(GROUPS, lambda found: "digits" in found))["digits"]
            assert (group["spec"]["minMember"], group["spec"]["queue"]) == (5, "default")
            words = "5/5 tasks in gang unschedulable: queue resource quota insufficient"
            await tell(
                world, "Pending", type="Unschedulable", status="True", reason="NotEnoughResources", message=words
            )
            jobs = await world.eventually(JOBS, lambda jobs: words in str(jobs["digits"].get("status")))
            (told,) = (each for each in jobs["digits"]["status"]["conditions"] if words in each["message"])
            assert told["message"] == f"0 of 5 placed: pod group digits waits for its queue: {words}"
            assert not await world.names(PODS)
            await tell(world, "Inqueue")
            pods = await world.pods(5)
            assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {"volcano"}
            await world.run_to_success(pods)
            await world.state("digits", "Succeeded")
            await world.eventually(GROUPS, lambda found: not found)
        finally:
            await world.stop()


async def tell(world, phase, **condition):
    """Say of the group what Volcano would; its schema has no subresource for its status."""
    status = {"phase": phase, **({"conditions": [condition]} if condition else {})}
    (await world.api.merge(world.path(f"{GROUPS}/digits"), {"status": status})).ok()
