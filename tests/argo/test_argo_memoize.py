"""A memoized step or runner, with the rights that Argo's controller needs for it and with those of Argo's own roles."""

import asyncio
import contextlib

import pytest
from argo_fixtures import NAMESPACE, messages_of, node_of, one_runner, one_training, outputs_of, uids
from hera.workflows.models import Memoize

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.kubernetes("workflow-controller", "argoexec"),
    pytest.mark.asyncio(loop_scope="module"),
]

RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
MAKERS = {"step": one_training, "runner": one_runner}


def memoized(kind, cache):
    """A run whose outputs Argo keeps in a ConfigMap of this name."""
    memoize = {"cache": {"configMap": {"name": cache}}, "key": "digits-1", "maxAge": "1h"}
    made = MAKERS[kind](memoize=Memoize.model_validate(memoize)).to_dict()
    (template,) = (each for each in made["spec"]["templates"] if "memoize" in each)
    # The CRDs of 3.7 ask for it, Argo reads it nowhere, and Hera has no field for it.
    template["memoize"]["cache"]["configMap"]["key"] = "unused"
    return made


@contextlib.asynccontextmanager
async def allowed(argo):
    """Let Argo's controller keep outputs, until the context ends."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "update"]}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "memoizes"}
    subjects = [{"kind": "ServiceAccount", "name": "argo", "namespace": NAMESPACE}]
    metadata = {"name": "memoizes"}
    (await argo.api.post(f"{RBAC}/roles", {"metadata": metadata, "rules": rules})).ok()
    binding = {"metadata": metadata, "roleRef": reference, "subjects": subjects}
    (await argo.api.post(f"{RBAC}/rolebindings", binding)).ok()
    try:
        yield
    finally:
        await argo.api.delete(f"{RBAC}/rolebindings/memoizes")
        await argo.api.delete(f"{RBAC}/roles/memoizes")


async def ended(argo, manifest, *, kills_poller=False):
    """The run when it is over, and its job, which succeeds."""
    name = await argo.submit(manifest)
    job = await argo.job(name)
    if kills_poller:
        first = await argo.poller(name)
        argo.kill(first)
        await argo.poller(name, other_than=first)
    await argo.end(job, message="0.5")
    return await argo.finished(name), job


async def test_a_second_run_of_a_memoized_step_has_the_outputs_of_the_first_and_no_job(argo):
    async with allowed(argo):
        first, job = await ended(argo, memoized("step", "remembers"), kills_poller=True)
        again = await argo.finished(await argo.submit(memoized("step", "remembers")))
    for run in (first, again):
        assert run["status"]["phase"] == "Succeeded"
        outputs = outputs_of(node_of(run, "train"))
        assert (outputs["job"], outputs["result"]) == (job["metadata"]["name"], "0.5")
    assert uids(await argo.jobs(first["metadata"]["name"])) == [job["metadata"]["uid"]]
    await argo.no_jobs(again["metadata"]["name"])


async def test_without_the_right_the_job_succeeds_and_its_step_is_an_error_at_once_in_argos_words(argo):
    ends = await asyncio.gather(*(ended(argo, memoized(kind, f"forgets-{kind}")) for kind in MAKERS))
    for run, job in ends:
        assert run["status"]["phase"] == "Error"
        (message,) = messages_of(run, "train")
        assert "could not save to config map cache: configmaps is forbidden" in message
        assert uids(await argo.jobs(run["metadata"]["name"])) == [job["metadata"]["uid"]]
