"""Descriptions over manifests, models of Kubernetes' client, and values that are filled in later."""

import copy
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy
import pytest
from descriptions import at

from mxnet_operator.description import DescriptionError, MXJobDescription, Placeholder, Role, to_manifest
from mxnet_operator.description.description import FIELDS


def training() -> dict[str, Any]:
    pod = {
        "containers": [
            {"name": "mxnet", "image": "a:1", "args": ["--x"], "env": [{"name": "A", "value": "1"}]},
            {"name": "sidecar", "image": "b"},
        ],
        "nodeSelector": {"zone": "a"},
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"name": "train", "labels": {"team": "vision"}},
        "spec": {
            "jobMode": "MXTrain",
            "runPolicy": {"backoffLimit": 1},
            "mxReplicaSpecs": {"worker": {"replicas": 2, "restartPolicy": "Never", "template": {"spec": pod}}},
        },
    }


def tuning() -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "mxnet", "image": "a"}]}}
    specs = {each: {"replicas": 1, "template": template} for each in ("TunerTracker", "TunerServer", "Tuner")}
    return {"spec": {"jobMode": "MXTune", "mxReplicaSpecs": specs}}


def over(manifest: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return to_manifest(MXJobDescription(**fields), manifest)


def worker(manifest: dict[str, Any], path: str) -> Any:
    return at(manifest, f"spec.mxReplicaSpecs.worker.{path}")


def gpu_template(gpus: int) -> dict[str, Any]:
    container = {"name": "mxnet", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"spec": {"containers": [container]}}


class Later(Placeholder):
    """A value that a framework fills in."""

    def one_if_any(self) -> "Later":
        return self

    def none_if_one(self) -> "Later":
        return self


def values(node: Any) -> Iterator[Any]:
    """Every value in a manifest that is no mapping and no list."""
    if isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from values(each)
    else:
        yield node


class TestOverAManifest:
    def test_what_is_not_said_stays_as_the_manifest_has_it(self) -> None:
        given = training()
        assert over(given) == training()
        assert given == training()

    @pytest.mark.parametrize(
        ("field", "path", "value"),
        [
            ("container_security_context", "template.spec.containers.0.securityContext", {"runAsUser": 1}),
            ("image_pull_policy", "template.spec.containers.0.imagePullPolicy", "Always"),
            ("security_context", "template.spec.securityContext", {"runAsUser": 1}),
            ("priority_class_name", "template.spec.priorityClassName", "high"),
            ("pod_labels", "template.metadata.labels", {"a": "b"}),
            ("pod_annotations", "template.metadata.annotations", {"a": "b"}),
        ],
    )
    def test_a_field_has_its_name_and_place_in_kubernetes(self, field: str, path: str, value: Any) -> None:
        assert worker(over(training(), **{field: value}), path) == value

    def test_seconds_of_a_timedelta_are_whole(self) -> None:
        job = over(training(), ttl_seconds_after_finished=timedelta(seconds=1.5))
        assert at(job, "spec.runPolicy.ttlSecondsAfterFinished") == 2

    def test_volumes_and_mounts_take_the_place_of_those_of_their_names(self) -> None:
        given = training()
        given["spec"]["mxReplicaSpecs"]["worker"]["template"]["spec"]["volumes"] += [{"name": "z", "emptyDir": {}}]
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "images"}}
        job = over(over(given, volume_mounts=[{"name": "z", "mountPath": "/data", "subPath": "x"}]), volumes=[claim])
        job = over(job, volume_mounts=[{"name": "data", "mountPath": "/data"}])
        assert worker(job, "template.spec.volumes") == [claim, {"name": "z", "emptyDir": {}}]
        assert worker(job, "template.spec.containers.0.volumeMounts") == [{"name": "data", "mountPath": "/data"}]

    def test_mappings_merge_key_by_key(self) -> None:
        job = over(training(), node_selector={"pool": "gpus"}, labels={"run": "7"}, backoff_limit=3)
        assert worker(job, "template.spec.nodeSelector") == {"zone": "a", "pool": "gpus"}
        assert job["metadata"]["labels"] == {"team": "vision", "run": "7"}
        assert job["spec"]["runPolicy"] == {"backoffLimit": 3}

    def test_arguments_take_the_place_of_the_manifests(self) -> None:
        assert worker(over(training(), args=["--y"]), "template.spec.containers.0.args") == ["--y"]

    def test_other_containers_are_left_alone(self) -> None:
        job = over(training(), image="a:2", gpus_per_worker=1)
        assert worker(job, "template.spec.containers.0.image") == "a:2"
        assert worker(job, "template.spec.containers.1") == {"name": "sidecar", "image": "b"}

    def test_servers_that_the_manifest_lacks_are_made_like_the_workers_with_a_scheduler(self) -> None:
        specs = over(training(), servers=2, gpus_per_worker=1)["spec"]["mxReplicaSpecs"]
        assert {name: spec["replicas"] for name, spec in specs.items()} == {"worker": 2, "Scheduler": 1, "Server": 2}
        server = specs["Server"]["template"]["spec"]["containers"][0]
        assert server == {
            key: value
            for key, value in specs["worker"]["template"]["spec"]["containers"][0].items()
            if key != "resources"
        }

    def test_a_name_takes_the_place_of_a_generated_one(self) -> None:
        job = over({**training(), "metadata": {"generateName": "train-"}}, name="mine")
        assert job["metadata"] == {"name": "mine"}

    def test_a_tuning_has_no_workers(self) -> None:
        with pytest.raises(DescriptionError, match=r"^workers: the manifest is a tuning"):
            over(tuning(), workers=2)

    @pytest.mark.parametrize(
        "manifest",
        [
            {},
            {"spec": None},
            {"spec": {"mxReplicaSpecs": []}},
            {"spec": {"mxReplicaSpecs": {"Worker": 5}}},
            {"spec": {"mxReplicaSpecs": {"Worker": {"template": {"spec": {"containers": "x", "volumes": ["y"]}}}}}},
        ],
    )
    def test_what_is_malformed_is_left_to_validation(self, manifest: dict[str, Any]) -> None:
        over(manifest, image="a", volumes=[{"name": "data"}], labels={"a": "b"}, backoff_limit=1)


NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"


def with_resources(**resources: Any) -> dict[str, Any]:
    """`training` whose Workers ask for these."""
    given = training()
    given["spec"]["mxReplicaSpecs"]["worker"]["template"]["spec"]["containers"][0]["resources"] = resources
    return given


GPUS: dict[str, tuple[dict[str, Any], Any]] = {
    "the job's name for a role's number": ({"gpu_resource": AMD, "workers": Role(gpus=2)}, {AMD: 2}),
    "a role's name for the job's number": ({"gpus_per_worker": 1, "workers": Role(gpu_resource=AMD)}, {AMD: 1}),
    "a role's name over the job's": ({"gpu_resource": NVIDIA, "workers": Role(gpu_resource=AMD, gpus=1)}, {AMD: 1}),
    "a role's none over the job's number": ({"gpus_per_worker": 1, "workers": Role(gpus=0)}, None),
    "a role's number over the job's resources": (
        {"container_resources": {"limits": {NVIDIA: 1, "cpu": 2}}, "workers": Role(gpus=2)},
        {NVIDIA: 2, "cpu": 2},
    ),
    "a role's none over the job's resources": (
        {"container_resources": {"limits": {NVIDIA: 1, "cpu": 2}}, "workers": Role(gpus=0)},
        {"cpu": 2},
    ),
    "a role's resources over the job's number": (
        {"gpus_per_worker": 1, "workers": Role(container_resources={"limits": {NVIDIA: 3}})},
        {NVIDIA: 3},
    ),
    "a role in Kubernetes' words over the job's number": (
        {"gpus_per_worker": 1, "workers": {"template": gpu_template(3)}},
        {NVIDIA: 3},
    ),
    "a number over words of the same role": ({"workers": {"gpus": 2, "template": gpu_template(3)}}, {NVIDIA: 2}),
    "a role's request of as many": (
        {"gpus_per_worker": 1, "workers": Role(container_resources={"requests": {NVIDIA: "1"}})},
        {NVIDIA: 1},
    ),
    "a name without a number": ({"gpu_resource": AMD}, None),
    "none": ({"gpus_per_worker": 0}, None),
}
OVER_A_MANIFEST: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "none takes it away": (
        {"limits": {NVIDIA: 4, "cpu": 2}, "requests": {NVIDIA: 4, "cpu": 1}},
        {"gpus_per_worker": 0},
        {"limits": {"cpu": 2}, "requests": {"cpu": 1}},
    ),
    "so does none of a role": ({"limits": {NVIDIA: 4}}, {"workers": Role(gpus=0)}, {"limits": {}}),
    "of the resource that is named": (
        {"limits": {NVIDIA: 4, AMD: 1}},
        {"gpus_per_worker": 0, "gpu_resource": AMD},
        {"limits": {NVIDIA: 4}},
    ),
    "a number leaves no other request": (
        {"limits": {NVIDIA: 4}, "requests": {NVIDIA: 4, "cpu": 1}},
        {"gpus_per_worker": 2},
        {"limits": {NVIDIA: 2}, "requests": {"cpu": 1}},
    ),
    "none where there are none": ({"limits": {"cpu": 2}}, {"gpus_per_worker": 0}, {"limits": {"cpu": 2}}),
}


class TestGPUs:
    @pytest.mark.parametrize("case", GPUS)
    def test_a_role_has_one_limit_of_them(self, case: str) -> None:
        fields, meant = GPUS[case]
        specs = to_manifest(MXJobDescription(image="a", **fields))["spec"]["mxReplicaSpecs"]
        limits = at(specs, "Worker.template.spec.containers.0.resources.limits")
        assert (limits or None) == meant

    @pytest.mark.parametrize("case", OVER_A_MANIFEST)
    def test_a_role_of_a_manifest_has_one_limit_of_gpus(self, case: str) -> None:
        resources, fields, meant = OVER_A_MANIFEST[case]
        given = with_resources(**resources)
        assert worker(over(given, **fields), "template.spec.containers.0.resources") == meant
        assert given == with_resources(**resources)

    def test_none_adds_nothing_to_a_manifest_without_resources(self) -> None:
        assert over(training(), gpus_per_worker=0) == training()

    def test_servers_that_measure_have_theirs_by_the_jobs_name(self) -> None:
        specs = over(tuning(), servers=Role(gpus=2), gpu_resource=AMD)["spec"]["mxReplicaSpecs"]
        assert at(specs, "TunerServer.template.spec.containers.0.resources.limits") == {AMD: 2}

    @pytest.mark.parametrize(
        ("fields", "path"),
        [
            ({"gpus_per_worker": 2, "container_resources": {"limits": {NVIDIA: 1}}}, "gpus_per_worker"),
            ({"workers": Role(gpus=2, container_resources={"limits": {NVIDIA: 1}})}, "workers.gpus"),
            ({"workers": Role(gpus=2, container_resources={"requests": {NVIDIA: 1}})}, "workers.gpus"),
            ({"gpus_per_worker": 2, "container_resources": Later()}, "gpus_per_worker"),
            ({"gpus_per_worker": 2, "workers": Role(container_resources=Later())}, "gpus_per_worker"),
            ({"workers": Role(gpus=2, container_resources=Later())}, "workers.gpus"),
            ({"gpus_per_worker": 2, "container_resources": {"limits": Later()}}, "gpus_per_worker"),
        ],
    )
    def test_what_can_not_both_hold_is_rejected(self, fields: dict[str, Any], path: str) -> None:
        with pytest.raises(DescriptionError) as refusal:
            to_manifest(MXJobDescription(image="a", **fields))
        assert [each.path for each in refusal.value.problems] == [path]

    def test_a_manifests_resources_that_are_filled_in_later_take_no_number(self) -> None:
        with pytest.raises(DescriptionError, match=r"^gpus_per_worker: "):
            over(with_resources(limits=Later()), gpus_per_worker=1)


def flat(**fields: Any) -> dict[str, Any]:
    """`training` in the format of v1beta1."""
    given = training()
    spec = {"jobMode": "MXTrain", "cleanPodPolicy": "All", "mxReplicaSpecs": given["spec"]["mxReplicaSpecs"], **fields}
    return {**given, "apiVersion": "kubeflow.org/v1beta1", "spec": spec}


class TestOverAnOlderFormat:
    def test_it_needs_no_name(self) -> None:
        assert over({**flat(), "metadata": {"generateName": "a-"}}, workers=1)["metadata"] == {"generateName": "a-"}
        assert over({**flat(), "metadata": None}, workers=1)["metadata"] == {}

    def test_its_images_may_come_from_the_description(self) -> None:
        def imageless(**fields: Any) -> dict[str, Any]:
            given = copy.deepcopy(flat(**fields))
            for spec in given["spec"]["mxReplicaSpecs"].values():
                for container in spec["template"]["spec"]["containers"]:
                    container.pop("image", None)
            return given

        assert worker(over(imageless(), image="mine:1"), "template.spec.containers")[0]["image"] == "mine:1"
        with pytest.raises(DescriptionError) as refusal:
            over(imageless(schedulerName="x"), image="mine:1")
        assert [each.path for each in refusal.value.problems] == ["spec"]
        assert "schedulerName" in refusal.value.problems[0].message

    def test_values_that_are_filled_in_later_are_for_v1(self) -> None:
        with pytest.raises(DescriptionError, match="convert it first: mxjob convert -f FILE"):
            over(flat(cleanPodPolicy=Later()), workers=1)


class TestQueue:
    def test_a_queue_is_a_label_and_suspends_nothing_in_the_spec(self) -> None:
        job = over(training(), queue_name="gpus")
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
        assert "suspend" not in job["spec"].get("runPolicy", {})


NESTED: dict[str, Any] = {
    "affinity": lambda odd: {"nodeAffinity": odd},
    "args": lambda odd: [odd],
    "command": lambda odd: [odd],
    "config_maps": lambda odd: [odd],
    "container_resources": lambda odd: {"limits": {"cpu": odd}},
    "container_security_context": lambda odd: {"runAsUser": odd},
    "env": lambda odd: {"A": odd},
    "env_from": lambda odd: [{"secretRef": {"name": odd}}],
    "image_pull_secrets": lambda odd: [{"name": odd}],
    "init_containers": lambda odd: [{"name": odd}],
    "node_selector": lambda odd: {"a": odd},
    "run_policy": lambda odd: {"schedulingPolicy": {"minAvailable": odd}},
    "secrets": lambda odd: [odd],
    "security_context": lambda odd: {"fsGroup": odd},
    "tolerations": lambda odd: [{"tolerationSeconds": odd}],
    "volume_mounts": lambda odd: [{"name": odd}],
    "volumes": lambda odd: [{"name": "v", "emptyDir": {"sizeLimit": odd}}],
    **dict.fromkeys(("labels", "annotations", "pod_labels", "pod_annotations"), lambda odd: {"a": odd}),
    **dict.fromkeys(("workers", "servers", "schedulers"), lambda odd: {"image": "a", "replicas": odd}),
}
ODD: dict[str, Any] = {
    "a decimal number": Decimal("0.5"),
    "a number of NumPy's": numpy.int64(1),
    "a set": {"a"},
    "a date": date(2026, 1, 1),
    "what isn't a number": float("nan"),
    "a number as a key": {2024: "x"},
    "half a character": "\ud800",
}
BASE = {"image": "a", "command": ["x"]}


class TestOddValues:
    """Whatever a field has, it is a job that JSON can say, or a mistake with the field's path."""

    @pytest.mark.parametrize("odd", ODD)
    def test_what_json_can_not_say_is_named_by_its_field(self, odd: str) -> None:
        for field in FIELDS:
            for value in (ODD[odd], NESTED.get(field, lambda odd: [odd])(ODD[odd])):
                with pytest.raises(DescriptionError) as refusal:
                    MXJobDescription(**{**BASE, field: value})
                assert all(each.path.startswith(field) for each in refusal.value.problems), field

    @pytest.mark.parametrize("field", FIELDS)
    def test_a_value_that_is_filled_in_later_is_in_the_job_or_named_by_its_field(self, field: str) -> None:
        later = Later()
        for name, value in (("whole", later), ("within", NESTED.get(field, lambda odd: odd)(later))):
            try:
                job = to_manifest(MXJobDescription(**{**BASE, "gpus_per_worker": 1, "secrets": ["s"], field: value}))
            except DescriptionError as error:
                assert [each.path for each in error.problems] == (
                    ["gpus_per_worker"] if field == "container_resources" else [field]
                ), name
            else:
                assert later in values(job), name

    def test_a_value_that_contains_itself_is_named(self) -> None:
        affinity: dict[str, Any] = {}
        affinity["nodeAffinity"] = affinity
        with pytest.raises(DescriptionError, match=r"^affinity\.nodeAffinity.*: nested deeper than 100 levels$"):
            MXJobDescription(affinity=affinity)

    def test_the_name_of_a_variable_may_be_filled_in_later(self) -> None:
        later = Later()
        assert later in values(to_manifest(MXJobDescription(image="a", env={later: "x"})))


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(DescriptionError) as refusal:
        MXJobDescription(command="a", env={"A": 1}, workers=Role(replicas=2, args="b"))  # type: ignore[arg-type]
    assert [each.path for each in refusal.value.problems] == ["command", "env.A", "workers.args"]


def test_a_job_needs_an_image() -> None:
    with pytest.raises(DescriptionError, match=r"^image: Required value: give an image, or a manifest$"):
        to_manifest(MXJobDescription(command=["a"]))


def test_roles_with_images_of_their_own_need_none_in_common() -> None:
    assert to_manifest(MXJobDescription(workers=Role(image="a")))["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] == 1
