"""Labels of pods that somebody changes: the pod stays its job's, whatever they say."""

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod, observe

from mxnet_operator.api import names
from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.builders import build_pod
from mxnet_operator.controller.projection import project_pod
from mxnet_operator.plan import PodView, plan
from mxnet_operator.plan.actions import DeletePod, RestoreLabels

JOB = make_mxjob().scheduler().worker(2).restart("ExitCode").condition("Created").condition("Running").obj()
OF_ALL_TYPES = make_mxjob().gang().replicas("TunerTracker", 1).replicas("TunerServer", 1).replicas("Tuner", 1).obj()
OURS = (
    names.LABEL_OPERATOR_NAME,
    names.LABEL_REPLICA_TYPE,
    names.LABEL_REPLICA_INDEX,
    names.LABEL_ATTEMPT,
    names.LABEL_JOB_NAME,
    names.LABEL_JOB_UID,
    names.LABEL_RUNTIME_ID,
)


def seen(labels: dict[str, str | None], replica_type: str = "Worker") -> PodView:
    """What is read of Worker 1 of attempt 3 with some labels changed; None takes one away."""
    manifest = build_pod(with_defaults(OF_ALL_TYPES), replica_type, 1, 3)
    changed = {**manifest["metadata"]["labels"], **labels}
    kept = {key: value for key, value in changed.items() if value is not None}
    metadata = {**manifest["metadata"], "uid": "w", "labels": kept}
    child = project_pod(msgspec.Raw(msgspec.json.encode({**manifest, "metadata": metadata, "status": {}})))
    assert child is not None
    return child.view


@pytest.mark.parametrize("value", [None, "", "7", "server", "-1"])
@pytest.mark.parametrize("label", OURS)
def test_a_pod_is_what_it_was_created_as_whatever_its_labels_say(label: str, value: str | None) -> None:
    view = seen({label: value})
    assert (view.type, view.index, view.attempt, view.mislabelled) == ("Worker", 1, 3, True)


@pytest.mark.parametrize("value", [None, "", "worker"])
def test_the_role_of_a_server_is_one_of_its_labels(value: str | None) -> None:
    assert not seen({}, "Server").mislabelled
    assert seen({names.LABEL_JOB_ROLE: value}, "Server").mislabelled


@pytest.mark.parametrize("replica_type", ["Scheduler", "Server", "Worker", "TunerTracker", "Tuner"])
def test_labels_of_the_user_are_the_users(replica_type: str) -> None:
    assert not seen({"team": "vision"}, replica_type).mislabelled


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
    assert child is not None
    assert (child.view.index, child.view.attempt, child.view.mislabelled) == (1, 0, False)


def test_a_running_gang_goes_on_and_its_pod_gets_its_labels_back_with_an_event() -> None:
    workers = make_pod(JOB, "Worker").running(), make_pod(JOB, "Worker", 1).running().set(mislabelled=True)
    answer = plan(JOB, observe(JOB, make_pod(JOB, "Scheduler").running(), *workers), NOW)
    pod = workers[1].obj()
    assert answer.actions == (RestoreLabels(pod.name, pod.uid, "Worker", 1, 0),)
    assert answer.status is None or answer.status.restarts == 0
    assert [event.reason for event in answer.events] == ["PodLabelsRestored"]
    assert answer.requeue_after is not None


def test_a_pod_of_an_earlier_attempt_goes_without_them_and_is_asked_after() -> None:
    job = make_mxjob().scheduler().worker(2).restart("ExitCode").status(restarts=1).condition("Created").obj()
    old = make_pod(JOB, "Worker", 1).running().set(mislabelled=True)
    answer = plan(job, observe(job, old), NOW)
    assert [type(action) for action in answer.actions] == [DeletePod]
    assert answer.requeue_after is not None
