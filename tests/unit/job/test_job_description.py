"""Descriptions over manifests, models of Kubernetes' client, and values that are filled in later."""

from datetime import UTC, datetime
from typing import Any

import pytest
from descriptions import at
from kubernetes import client as k8s

from mxnet_operator.job import DescriptionError, MXJobDescription, Role, to_manifest
from mxnet_operator.job.plain import plain


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


class TestOverAManifest:
    def test_what_is_not_said_stays_as_the_manifest_has_it(self) -> None:
        given = training()
        assert over(given) == training()
        assert given == training()

    def test_variables_and_volumes_merge_by_name(self) -> None:
        mounted = [{"name": "more", "emptyDir": {}}]
        job = over(training(), env={"A": "2", "B": "3"}, volumes=mounted)
        assert worker(job, "template.spec.containers.0.env") == [
            {"name": "A", "value": "2"},
            {"name": "B", "value": "3"},
        ]
        assert worker(job, "template.spec.volumes") == [{"name": "data", "emptyDir": {}}, *mounted]

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

    def test_a_number_of_workers_changes_nothing_else(self) -> None:
        job = over(training(), workers=5)
        assert worker(job, "replicas") == 5
        assert list(job["spec"]["mxReplicaSpecs"]) == ["worker"]

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

    def test_the_servers_of_a_tuning_are_those_that_measure(self) -> None:
        specs = over(tuning(), servers=3, gpus_per_worker=1)["spec"]["mxReplicaSpecs"]
        assert specs["TunerServer"]["replicas"] == 3
        assert "resources" in specs["TunerServer"]["template"]["spec"]["containers"][0]
        assert "resources" not in specs["Tuner"]["template"]["spec"]["containers"][0]

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


class TestQueue:
    def test_a_queue_is_a_label_and_suspends_nothing_in_the_spec(self) -> None:
        job = over(training(), queue_name="gpus")
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
        assert "suspend" not in job["spec"].get("runPolicy", {})


class TestModels:
    @pytest.mark.parametrize(
        "model",
        [
            k8s.V1Volume(name="d", persistent_volume_claim=k8s.V1PersistentVolumeClaimVolumeSource(claim_name="c")),
            k8s.V1PodSpec(containers=[k8s.V1Container(name="mxnet", image="a", env=[k8s.V1EnvVar("A", "b")])]),
            k8s.V1ObjectMeta(name="x", creation_timestamp=datetime(2026, 1, 2, tzinfo=UTC)),
            {"a": [k8s.V1Toleration(key="k", operator="Exists")]},
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_models_are_written_as_the_client_writes_them(self, model: Any) -> None:
        assert plain(model) == k8s.ApiClient().sanitize_for_serialization(model)

    def test_a_manifest_may_hold_models(self) -> None:
        given = training()
        given["spec"]["mxReplicaSpecs"]["worker"]["template"] = k8s.V1PodTemplateSpec(
            spec=k8s.V1PodSpec(containers=[k8s.V1Container(name="mxnet", image="a")])
        )
        assert worker(over(given, args=["x"]), "template.spec.containers.0") == {
            "name": "mxnet",
            "image": "a",
            "args": ["x"],
        }


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(DescriptionError) as refusal:
        MXJobDescription(command="a", env={"A": 1}, workers=Role(replicas=2, args="b"))  # type: ignore[arg-type]
    assert [each.path for each in refusal.value.problems] == ["command", "env.A", "workers.args"]


def test_a_job_needs_an_image() -> None:
    with pytest.raises(DescriptionError, match=r"^image: Required value: give an image, or a manifest$"):
        to_manifest(MXJobDescription(command=["a"]))


def test_roles_with_images_of_their_own_need_none_in_common() -> None:
    assert to_manifest(MXJobDescription(workers=Role(image="a")))["spec"]["mxReplicaSpecs"]["Worker"]["replicas"] == 1
