"""Labels of pods: users may edit them, and operators before training-operator 1.8 set others."""

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod, observe, plan

from mxnet_operator.api import names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.plan import PodView
from mxnet_operator.plan.actions import RestoreLabels

JOB = make_mxjob().scheduler().worker(2).restart("ExitCode").condition("Created").condition("Running").obj()
OURS = (
    names.LABEL_OPERATOR_NAME,
    names.LABEL_REPLICA_TYPE,
    names.LABEL_REPLICA_INDEX,
    names.LABEL_ATTEMPT,
    names.LABEL_JOB_NAME,
)


def seen(labels: dict[str, str | None]) -> PodView:
    """What is read of Worker 1 of attempt 3 with some labels changed; None takes one away."""
    manifest = build_pod(with_defaults(JOB), "Worker", 1, 3)
    changed = {**manifest["metadata"]["labels"], **labels}
    kept = {key: value for key, value in changed.items() if value is not None}
    metadata = {**manifest["metadata"], "uid": "w", "labels": kept}
    child = project_pod(msgspec.Raw(msgspec.json.encode({**manifest, "metadata": metadata, "status": {}})))
    return child.view


@pytest.mark.parametrize("value", [None, "", "7", "server", "-1"])
@pytest.mark.parametrize("label", OURS)
def test_a_pod_is_what_it_was_created_as_whatever_its_labels_say(label: str, value: str | None) -> None:
    view = seen({label: value})
    assert (view.type, view.index, view.attempt) == ("Worker", 1, 3)
    assert view.is_watched == (label != names.LABEL_OPERATOR_NAME)


def test_a_pod_of_training_operator_is_what_its_labels_say() -> None:
    metadata = {
        "name": "digits-worker-1",
        "namespace": "default",
        "labels": {
            names.LABEL_OPERATOR_NAME: names.OPERATOR_NAME,
            names.LABEL_REPLICA_TYPE: "worker",
            names.LABEL_REPLICA_INDEX: "1",
        },
        "ownerReferences": build_pod(with_defaults(JOB), "Worker", 1, 0)["metadata"]["ownerReferences"],
    }
    child = project_pod(msgspec.Raw(msgspec.json.encode({"metadata": metadata, "status": {}})))
    assert (child.view.index, child.view.attempt, child.view.is_watched) == (1, 0, True)


def test_pods_of_an_older_operator_get_labels_before_anything_else_is_decided() -> None:
    workers = make_pod(JOB, "Worker").failed(3), make_pod(JOB, "Worker", 1).running().set(is_watched=False)
    answer = plan(JOB, observe(JOB, make_pod(JOB, "Scheduler").running(), *workers), NOW)
    pod = workers[1].obj()
    assert answer.actions == (RestoreLabels(pod.name, pod.uid, "Worker", 1),)
    assert (answer.status, answer.events) == (None, ())
