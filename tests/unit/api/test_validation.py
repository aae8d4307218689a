"""What makes a manifest an MXJob: one message per mistake, in the API server's words."""

from typing import Any

import pytest
from builders import make_mxjob

from mxnet_operator.api import job_formats
from mxnet_operator.api.validation import (
    decode,
    template_errors,
    unknown_fields,
    validate,
)


def messages(manifest: Any) -> list[str]:
    return [error.message for error in validate(manifest)]


def without(manifest: dict[str, Any], *path: str) -> dict[str, Any]:
    node = manifest
    for key in path[:-1]:
        node = node[key]
    del node[path[-1]]
    return manifest


def changed(manifest: dict[str, Any], value: Any, *path: Any) -> dict[str, Any]:
    node = manifest
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return manifest


WORKER = ("spec", "mxReplicaSpecs", "Worker")
CONTAINERS = (*WORKER, "template", "spec", "containers")


def worker() -> dict[str, Any]:
    return make_mxjob().worker(1).manifest()


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (without(worker(), "spec"), "spec: Required value"),
        (without(worker(), "spec", "jobMode"), "spec.jobMode: Required value: MXTrain or MXTune"),
        (without(worker(), "spec", "mxReplicaSpecs"), "spec.mxReplicaSpecs: Required value: the replicas by type"),
        (without(worker(), *WORKER, "template"), "spec.mxReplicaSpecs.Worker.template: Required value"),
        (
            without(worker(), *CONTAINERS),
            "spec.mxReplicaSpecs.Worker.template.spec.containers: Required value",
        ),
        (
            changed(worker(), [], *CONTAINERS),
            "spec.mxReplicaSpecs.Worker.template.spec.containers: Invalid value: 0: "
            "spec.mxReplicaSpecs.Worker.template.spec.containers in body should have at least 1 items",
        ),
        (
            changed(worker(), "two", *WORKER, "replicas"),
            'spec.mxReplicaSpecs.Worker.replicas: Invalid value: "string": '
            'spec.mxReplicaSpecs.Worker.replicas in body must be of type integer: "string"',
        ),
        (
            changed(worker(), -1, *WORKER, "replicas"),
            "spec.mxReplicaSpecs.Worker.replicas: Invalid value: -1: "
            "spec.mxReplicaSpecs.Worker.replicas in body should be greater than or equal to 0",
        ),
        (
            changed(worker(), 10_001, *WORKER, "replicas"),
            "spec.mxReplicaSpecs.Worker.replicas: Invalid value: 10001: "
            "spec.mxReplicaSpecs.Worker.replicas in body should be less than or equal to 10000",
        ),
        (
            changed(worker(), "Sometimes", *WORKER, "restartPolicy"),
            'spec.mxReplicaSpecs.Worker.restartPolicy: Unsupported value: "Sometimes": supported values: '
            '"", "Always", "ExitCode", "Never", "OnFailure"',
        ),
        (
            changed(worker(), [{"name": "mxnet"}], *CONTAINERS),
            "spec.mxReplicaSpecs.Worker.template.spec.containers[0].image: Required value",
        ),
        (
            make_mxjob().replicas("Wroker", 1).manifest(),
            "spec.mxReplicaSpecs: Invalid value: each key must be one of "
            "Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner",
        ),
        (
            make_mxjob().scheduler(2).worker(1).manifest(),
            "spec.mxReplicaSpecs: Invalid value: Scheduler and TunerTracker can have one replica only",
        ),
        (
            make_mxjob().server(1).worker(1).manifest(),
            "spec.mxReplicaSpecs: Invalid value: a Server needs a Scheduler to register with",
        ),
        (
            make_mxjob("1digits").worker(1).manifest(),
            'metadata.name: Invalid value: "1digits": must start with a lower-case letter and consist of lower-case '
            "letters, digits and '-' (a DNS-1035 label)",
        ),
        (
            changed(worker(), "kubeflow.org/v2", "apiVersion"),
            'apiVersion: Unsupported value: "kubeflow.org/v2": supported values: "kubeflow.org/v1", '
            '"kubeflow.org/v1beta1", "kubeflow.org/v1alpha1", "fioravanzo.org/v1alpha1"',
        ),
        (without(worker(), "kind"), "kind: Required value: expected MXJob"),
        (without(worker(), "metadata"), "metadata.name: Required value: name or generateName is required"),
        (
            changed(worker(), 7, "metadata", "name"),
            'metadata.name: Invalid value: "integer": metadata.name in body must be of type string: "integer"',
        ),
        (
            changed(worker(), 1000, "metadata", "managedFields"),
            'metadata.managedFields: Invalid value: "integer": metadata.managedFields in body must be of type array: '
            '"integer"',
        ),
        *(
            (
                changed(worker(), {}, "metadata", field),
                f'metadata.{field}: Invalid value: "object": metadata.{field} in body must be of type string: "object"',
            )
            for field in ("namespace", "generateName", "resourceVersion", "deletionTimestamp")
        ),
        (
            changed(worker(), "digits", "metadata"),
            'metadata: Invalid value: "string": metadata in body must be of type object: "string"',
        ),
        ([], "an MXJob is a mapping with apiVersion, kind, metadata and spec"),
        (None, "an MXJob is a mapping with apiVersion, kind, metadata and spec"),
    ],
)
def test_one_mistake_has_one_message_with_the_path_and_what_is_expected(manifest: Any, expected: str) -> None:
    assert messages(manifest) == [expected]


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            make_mxjob().worker(1).replicas("worker", 1).manifest(),
            "spec.mxReplicaSpecs: Invalid value: a type is given twice, in different case",
        ),
        (make_mxjob().worker(0).manifest(), "spec.mxReplicaSpecs: Invalid value: at least one replica is needed"),
        (
            make_mxjob().worker(1).run_policy(earlyStopping={"metric": "loss", "startEpoch": 0}).manifest(),
            "spec.runPolicy.earlyStopping: Invalid value: needs below, above or both",
        ),
    ],
)
def test_a_rare_mistake_is_told_by_validate_and_the_controller_alone(manifest: Any, expected: str) -> None:
    assert messages(manifest) == []
    assert [error.message for error in job_formats.errors(manifest)] == [expected]


@pytest.mark.parametrize("mode", ["mxtune", "Banana", "train"])
def test_a_mode_that_does_not_exist_is_rejected_at_submission_and_runs_where_it_is_stored(mode: str) -> None:
    manifest = changed(worker(), mode, "spec", "jobMode")
    assert messages(manifest) == [f'spec.jobMode: Invalid value: "{mode}": did you mean MXTrain or MXTune?']
    assert [error.path for error in job_formats.submission_errors(manifest)] == ["spec.jobMode"]
    assert job_formats.errors(manifest) == []
    assert validate(manifest, replaces=manifest) == []
    assert validate(manifest, replaces=worker()) != []


def test_a_lone_surrogate_in_a_label_is_one_mistake_that_can_be_printed() -> None:
    (found,) = messages(changed(worker(), {"team": "a\ud800"}, "metadata", "labels"))
    assert found.startswith('metadata.labels: Invalid value: "a?": a valid label must')
    found.encode()


@pytest.mark.parametrize(("length", "fits"), [(54, True), (55, False), (64, False)])
def test_a_name_must_leave_room_for_type_and_index(length: int, fits: bool) -> None:
    assert (messages(make_mxjob("a" * length).worker(10).manifest()) == []) is fits


def test_a_generated_name_is_counted_with_its_suffix() -> None:
    manifest = make_mxjob().worker(1).manifest()
    manifest["metadata"] = {"generateName": "a" * 50}
    assert len(messages(manifest)) == 1
    manifest["metadata"] = {"generateName": "digits-"}
    assert messages(manifest) == []


def test_an_unknown_field_is_named_with_the_one_that_was_probably_meant() -> None:
    manifest = make_mxjob().worker(1).manifest()
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["replica"] = 2
    manifest["spec"]["bogus"] = 1
    assert sorted(error.detail for error in unknown_fields(manifest)) == [
        'unknown field "spec.bogus"',
        'unknown field "spec.mxReplicaSpecs.Worker.replica", did you mean replicas?',
    ]


def test_an_unknown_field_beside_the_spec_or_in_the_metadata_is_named() -> None:
    manifest = {**make_mxjob().worker(1).manifest(), "metdata": {}}
    manifest["metadata"] = {"name": "a", "lables": {"team": "a"}, "a b": 1, "clusterName": ""}
    assert sorted(error.detail for error in unknown_fields(manifest)) == [
        'unknown field "metadata.a b"',
        'unknown field "metadata.lables", did you mean labels?',
        'unknown field "metdata", did you mean metadata?',
    ]


def test_fields_of_the_template_that_we_do_not_know_are_no_mistake_to_the_server_and_are_kept() -> None:
    manifest = make_mxjob().worker(1, resources={"limits": {"nvidia.com/gpu": 1}}).manifest()
    manifest["spec"]["mxReplicaSpecs"]["Worker"]["template"]["spec"]["newInKubernetes140"] = {"a": 1}
    assert messages(manifest) == []
    (unknown,) = unknown_fields(manifest)
    assert unknown.path.endswith(".template.spec.newInKubernetes140")
    job = decode(manifest)
    assert job.spec.mx_replica_specs["Worker"].template["spec"]["newInKubernetes140"] == {"a": 1}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"labels": {"a b": "c"}}, ['metadata.labels: Invalid value: "a b": name part must consist of']),
        ({"labels": {"a": "b c"}}, ['metadata.labels: Invalid value: "b c": a valid label must be']),
        ({"labels": {"a": "b" * 64}}, [f'metadata.labels: Invalid value: "{"b" * 64}": must be no more than 63 bytes']),
        ({"labels": {"A.b/c": ""}}, ['metadata.labels: Invalid value: "A.b/c": prefix part a lowercase RFC 1123']),
        (
            {"labels": {"": "ok", "a": "/"}, "annotations": {"x y": "any thing"}},
            [
                'metadata.labels: Invalid value: "": name part must be non-empty',
                'metadata.labels: Invalid value: "": name part must consist of',
                'metadata.labels: Invalid value: "/": a valid label must be',
                'metadata.annotations: Invalid value: "x y": name part must consist of',
            ],
        ),
        ({"annotations": {"a": "b" * 262144}}, ["metadata.annotations: Too long: may not be more than 262144 bytes"]),
        ({"labels": {"a": 1}}, ["metadata.labels: Invalid value: must map strings to strings"]),
        ({"labels": {"x.io/A_b": "", "a": "B.c-d_e"}, "annotations": {"X.io/a": "any thing \n"}}, []),
    ],
)
def test_labels_and_annotations_are_told_in_the_servers_words(metadata: dict[str, Any], expected: list[str]) -> None:
    manifest = worker()
    manifest["metadata"] |= metadata
    found = messages(manifest)
    assert [each[: len(wanted)] for each, wanted in zip(found, expected, strict=True)] == expected


def test_a_container_of_another_name_is_no_error_of_the_api_server() -> None:
    """A rule that reads names of containers would cost each write of a status more than all others together."""
    job = changed(worker(), "main", *CONTAINERS, 0, "name")
    assert messages(job) == []
    (found,) = template_errors(job)
    assert found.message == (
        "spec.mxReplicaSpecs[Worker].template.spec.containers: Invalid value: one of them must be named mxnet"
    )


@pytest.mark.parametrize("name", ["2024-exp", "a-name-of-fifty-nine-characters-which-no-pod-of-the-job-fits"])
def test_a_name_is_checked_when_a_job_is_created_and_not_when_it_is_changed(name: str) -> None:
    manifest = make_mxjob(name).worker(1).manifest()
    assert [error.path for error in validate(manifest)] == ["metadata.name"]
    assert validate(make_mxjob(name).worker(2).manifest(), replaces=manifest) == []
