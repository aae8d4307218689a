"""One resource in several versions, and several resources in one group: nothing is converted, and nothing is lost."""

import pytest
from older_jobs import FORMATS, kind_of_format, older_job

from mxnet_operator.api import job_formats
from mxnet_operator.api.formats.mxnetjob import KIND as MXNETJOB
from mxnet_operator.api.kinds import MXJOB

OF_KUBEFLOW = [
    job_format for job_format, (api_version, _, _) in FORMATS.items() if api_version.startswith("kubeflow.org/")
]
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def path(kind, version, namespace, name=""):
    return f"/apis/{kind.group}/{version}/namespaces/{namespace}/{kind.plural}" + (f"/{name}" if name else "")


def version_of(job_format):
    return FORMATS[job_format][0].rpartition("/")[2]


@pytest.mark.parametrize("job_format", OF_KUBEFLOW)
async def test_an_object_of_any_version_is_read_whole_in_every_one(api, namespace, job_format):
    kind, manifest = kind_of_format(job_format), older_job(job_format, "digits")
    made = (await api.post(path(kind, version_of(job_format), namespace), manifest, fieldValidation="Strict")).ok()
    for version in kind.versions:
        found = (await api.get(path(kind, version, namespace, "digits"))).ok()
        assert found["apiVersion"] == f"kubeflow.org/{version}"
        assert found["kind"] == kind.kind
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert written(found["spec"]) == written(made["spec"])


def written(spec):
    """A spec without what a version's schema fills in."""
    return {key: value for key, value in spec.items() if value != {"suspend": False}}


async def test_a_write_in_one_version_is_seen_in_the_others_and_by_their_watches(api, namespace):
    await api.post(path(MXJOB, "v1alpha1", namespace), older_job("v1alpha1", "digits"))
    async with api.watch(path(MXJOB, "v1beta1", namespace)) as events:
        assert (await events.next())["object"]["apiVersion"] == "kubeflow.org/v1beta1"
        words = {"phase": "Running", "replicaStatuses": [{"mx_replica_type": "WORKER", "state": "Running"}]}
        (await api.merge(path(MXJOB, "v1", namespace, "digits") + "/status", {"status": words})).ok()
        changed = (await events.next())["object"]
    assert changed["apiVersion"] == "kubeflow.org/v1beta1"
    assert changed["status"] == {**words, "restarts": 0}
    assert changed["spec"]["replicaSpecs"][0]["mxReplicaType"] == "SCHEDULER"


async def test_the_version_in_a_manifest_must_be_the_paths(api, namespace):
    refused = await api.post(path(MXJOB, "v1", namespace), older_job("v1beta1", "digits"))
    assert (refused.code, "kubeflow.org/v1" in refused.body["message"]) == (400, True)


async def test_discovery_names_the_versions_newest_first_and_what_each_has(api):
    group = (await api.get("/apis/kubeflow.org")).ok()
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1", "v1alpha1"]
    assert group["preferredVersion"]["version"] == "v1"
    for version, plurals in (("v1", ["mxjobs"]), ("v1beta1", ["mxjobs"]), ("v1alpha1", ["mxjobs", "mxnetjobs"])):
        resources = (await api.get(f"/apis/kubeflow.org/{version}")).ok()["resources"]
        assert sorted(each["name"] for each in resources if "/" not in each["name"]) == plurals
        named = {each["name"]: each for each in resources}
        assert named["mxjobs"]["categories"] == ["mxnet"]
        assert named["mxjobs"]["singularName"] == "mxjob"


@pytest.mark.parametrize("kind", [MXJOB, MXNETJOB], ids=lambda kind: kind.kind)
async def test_each_version_has_the_columns_of_its_definition(api, namespace, kind):
    crd = (await api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.name}")).ok()
    for version in crd["spec"]["versions"]:
        table = (await api.get(path(kind, version["name"], namespace), headers=TABLE)).ok()
        columns = [(each["name"], each["priority"]) for each in table["columnDefinitions"]]
        declared = [(each["name"], each.get("priority", 0)) for each in version["additionalPrinterColumns"]]
        assert columns == [("Name", 0), *declared]


@pytest.mark.parametrize("job_format", OF_KUBEFLOW)
async def test_a_list_shows_state_replicas_restarts_and_duration_of_jobs_of_every_format(api, namespace, job_format):
    kind = kind_of_format(job_format)
    await api.post(path(kind, version_of(job_format), namespace), older_job(job_format, "digits"))
    told = {"state": "Succeeded", "ready": "4/4", "restarts": 2, "duration": "1h5m", "form": job_format}
    (await api.merge(path(kind, kind.stored, namespace, "digits") + "/status", {"status": told})).ok()
    for version in kind.versions:
        table = (await api.get(path(kind, version, namespace), headers=TABLE)).ok()
        (row,) = (
            dict(zip((each["name"] for each in table["columnDefinitions"]), line["cells"], strict=True))
            for line in table["rows"]
        )
        shown = {name: row[name] for name in ("Name", "State", "Ready", "Restarts", "Duration", "Form")}
        assert shown == {"Name": "digits", **{name.capitalize(): value for name, value in told.items()}}
        assert row["Age"].endswith("s")
        assert row["Started"] in {None, "<unknown>"}


@pytest.mark.parametrize("job_format", [each for each in OF_KUBEFLOW if version_of(each) == "v1alpha1"])
async def test_a_template_in_a_list_is_stored_as_it_is_written(api, namespace, job_format):
    """It isn't typed, so nothing in it is pruned, filled in or refused: the controller says what is wrong."""
    kind, manifest = kind_of_format(job_format), older_job(job_format, "digits")
    template = next(iter(templates(manifest)))
    template["spec"]["containers"][0] |= {"env": {"FOO": "bar"}, "name": "main", "newest": [1, None]}
    template["spec"]["nodeSelector"] = None
    made = (await api.post(path(kind, version_of(job_format), namespace), manifest, fieldValidation="Strict")).ok()
    assert next(iter(templates(made))) == template
    at = path(kind, kind.stored, namespace, "digits")
    (await api.merge(f"{at}/status", {"status": {"state": "Failed"}})).ok()
    changed = (await api.merge(at, {"metadata": {"labels": {"a": "b"}}})).ok()
    assert next(iter(templates(changed))) == template
    assert job_formats.errors(changed) != []


def templates(manifest):
    specs = manifest["spec"].get("mxReplicaSpecs") or manifest["spec"]["replicaSpecs"]
    for each in specs if isinstance(specs, list) else specs.values():
        yield each["template"]
