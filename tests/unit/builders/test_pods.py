"""The pods of a job as they are posted: names, labels, owner, and a template that stays as it was."""

import json

from builders import built_pod, make_mxjob

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod


def test_labels_owner_and_names() -> None:
    manifest = built_pod(make_mxjob().gang(), "Server", 1, attempt=2)
    assert manifest["metadata"]["name"] == manifest["spec"]["hostname"] == "digits-server-1"
    assert manifest["spec"]["subdomain"] == "digits-mx"
    assert manifest["metadata"]["labels"] == {
        "training.kubeflow.org/operator-name": "mxjob-controller",
        "training.kubeflow.org/job-name": "digits",
        "training.kubeflow.org/replica-type": "server",
        "training.kubeflow.org/replica-index": "1",
        "training.kubeflow.org/job-role": "master",
        "mxjob.kubeflow.org/job-uid": "uid-of-digits",
        "mxjob.kubeflow.org/runtime-id": "uid-",
        "mxjob.kubeflow.org/attempt": "2",
    }
    assert manifest["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MXJob",
            "name": "digits",
            "uid": "uid-of-digits",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_the_users_labels_and_annotations_stay_and_ours_win() -> None:
    labels = {"team": "vision", "training.kubeflow.org/job-name": "other"}
    builder = make_mxjob().worker(1).template_metadata("Worker", labels=labels, annotations={"a": "b"})
    metadata = built_pod(builder)["metadata"]
    assert metadata["labels"]["team"] == "vision"
    assert metadata["labels"]["training.kubeflow.org/job-name"] == "digits"
    assert metadata["annotations"]["a"] == "b"
    assert metadata["annotations"]["mxjob.kubeflow.org/replica"] == "Worker/0/0"


def test_no_service_mesh_injects_a_proxy_unless_the_template_asks_for_one() -> None:
    builder = make_mxjob().worker(1)
    annotations = built_pod(builder)["metadata"]["annotations"]
    assert (annotations["sidecar.istio.io/inject"], annotations["linkerd.io/inject"]) == ("false", "disabled")
    builder.template_metadata("Worker", annotations={"sidecar.istio.io/inject": "true"})
    annotations = built_pod(builder)["metadata"]["annotations"]
    assert (annotations["sidecar.istio.io/inject"], annotations["linkerd.io/inject"]) == ("true", "disabled")


def test_the_old_name_of_the_gpu_resource_becomes_that_of_today() -> None:
    resources = {"limits": {"alpha.kubernetes.io/nvidia-gpu": 2, "cpu": "1"}, "requests": {"cpu": "1"}}
    built = built_pod(make_mxjob().worker(1, resources=resources))["spec"]["containers"][0]["resources"]
    assert built == {"limits": {"nvidia.com/gpu": 2, "cpu": "1"}, "requests": {"cpu": "1"}}


def test_the_controller_restarts_so_the_kubelet_never_does() -> None:
    assert built_pod(make_mxjob().worker(1).restart("OnFailure"))["spec"]["restartPolicy"] == "Never"


def test_a_failed_container_leaves_its_last_lines_unless_the_template_says_otherwise() -> None:
    assert (
        built_pod(make_mxjob().worker(1))["spec"]["containers"][0]["terminationMessagePolicy"]
        == "FallbackToLogsOnError"
    )
    chosen = built_pod(make_mxjob().worker(1, terminationMessagePolicy="File"))
    assert chosen["spec"]["containers"][0]["terminationMessagePolicy"] == "File"


def test_a_failed_init_container_leaves_its_last_lines() -> None:
    containers = [{"name": "first", "image": "i"}, {"name": "second", "terminationMessagePolicy": "File"}]
    built = built_pod(make_mxjob().worker(1).template("Worker", initContainers=containers))
    policies = [each["terminationMessagePolicy"] for each in built["spec"]["initContainers"]]
    assert policies == ["FallbackToLogsOnError", "File"]


def test_the_job_itself_is_not_changed() -> None:
    job = with_defaults(make_mxjob().gang().obj())
    before = json.dumps(job.spec.mx_replica_specs["Worker"].template)
    build_pod(job, "Worker", 0, 0)
    assert json.dumps(job.spec.mx_replica_specs["Worker"].template) == before
