"""What the API server's answer to the creation of a pod or Service means for its job, and whose a taken name is."""

import pytest
from builders import NOW, make_mxjob, make_pod, observe, plan
from msgspec.structs import replace

from mxnet_operator.api.defaults import with_defaults
from mxnet_operator.api.types import TrainingStatus
from mxnet_operator.plan import Effects, RejectedCreation, creation_rejected, reject
from mxnet_operator.plan.actions import DeletePod, StopPod
from mxnet_operator.plan.rejection import Found, Holder, holder_of_name

DECODING = (
    'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field '
    "Container.spec.containers.command of type []string"
)
INVALID = 'Pod "digits-worker-0" is invalid: spec.containers[0].env[0].name: Required value'
WEBHOOK = 'admission webhook "images.example.com" denied the request: the registry is not allowed'
POLICY = (
    "pods \"digits-worker-0\" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'all' denied request: no"
)
MUTATION = "policy 'sidecars' with binding 'all' denied request: no such sidecar"
PROXY = "<html><head><title>413 Request Entity Too Large</title></head></html>"
QUOTA = 'pods "digits-worker-0" is forbidden: exceeded quota: small'

REASONS = {400: "BadRequest", 403: "Forbidden", 409: "Conflict", 413: "RequestEntityTooLarge", 422: "Invalid"}
"""Those of the API server's Status; a proxy's page has none."""


@pytest.mark.parametrize(
    ("code", "words", "ends"),
    [
        (400, DECODING, True),
        (422, INVALID, True),
        (413, "Request entity too large: limit is 3145728", True),
        (413, PROXY, False),
        (400, PROXY, False),
        (400, WEBHOOK, False),  # what a webhook says without a code of its own: Kyverno's
        (422, WEBHOOK, False),
        (422, POLICY, False),
        (422, MUTATION, False),
        (403, QUOTA, False),
        (403, WEBHOOK, False),
        (429, "too many requests", False),
        (409, "Operation cannot be fulfilled on resourcequotas", False),
        (0, 'Pod "digits-worker-0" exists already and does not belong to this job', False),
    ],
)
@pytest.mark.parametrize("kind", ["Pod", "Service"])
def test_what_can_never_be_created_ends_the_job_in_the_servers_words(
    code: int, words: str, ends: bool, kind: str
) -> None:
    job = with_defaults(make_mxjob().gang().obj())
    decided = plan(job, observe(job), NOW)
    reason = "" if words is PROXY else REASONS.get(code, "")
    refused = RejectedCreation(kind=kind, name="digits-worker-0", code=code, reason=reason, message=words)
    told = creation_rejected(job, decided, refused, NOW)
    newest = told.status.conditions[-1]
    assert words in newest.message
    assert told.status.state == ("Failed" if ends else "Created")
    assert newest.type == ("Failed" if ends else "ReplicaFailure")
    if ends:
        assert f"{kind} digits-worker-0" in newest.message
        assert (told.status.completion_time, told.status.ready) == (NOW, "0/5")
        assert told.events[-1].reason == "MXJobFailed"


def test_what_runs_beside_a_pod_that_can_never_be_created_is_stopped() -> None:
    job = with_defaults(make_mxjob().gang(1, 1).run_policy(cleanPodPolicy="Running").condition("Created").obj())
    pods = (make_pod(job, "Scheduler").running(), make_pod(job, "Server").running())
    refused = RejectedCreation(kind="Pod", name="digits-worker-0", code=400, reason="BadRequest", message=DECODING)
    told = creation_rejected(job, plan(job, observe(job, *pods), NOW), refused, NOW)
    over = make_mxjob().gang(1, 1).run_policy(cleanPodPolicy="Running").condition("Failed").obj()
    assert told.status.replica_statuses["Server"].active == 0
    stopped = plan(over, observe(over, *pods), NOW).actions
    assert {action.name for action in stopped if isinstance(action, DeletePod | StopPod)} == {
        "digits-scheduler-0",
        "digits-server-0",
    }


def test_a_refusal_that_has_been_told_is_not_written_again() -> None:
    job = with_defaults(make_mxjob().worker(1).obj())
    refused = RejectedCreation(kind="Pod", name="digits-worker-0", code=403, reason="Forbidden", message=QUOTA)
    told = creation_rejected(job, plan(job, observe(job), NOW), refused, NOW)
    assert told.status is not None
    again = with_defaults(make_mxjob().worker(1).obj())
    again = type(again)(metadata=again.metadata, spec=again.spec, status=told.status)
    assert creation_rejected(again, Effects(), refused, NOW).status is None


def test_a_job_that_becomes_invalid_has_no_time_left_any_more() -> None:
    status = make_mxjob().worker(1).condition("Running").obj().status
    training = TrainingStatus(epoch=3, epochs=10, progress_percentage=30, estimated_remaining_seconds=9)
    told = reject("digits", replace(status, training=training), ("wrong",), NOW, has_running_pods=False)
    assert (told.status.state, told.status.training) == ("Failed", TrainingStatus(epoch=3, epochs=10))


def test_a_job_that_is_over_stays_what_it_is() -> None:
    job = with_defaults(make_mxjob().worker(1).condition("Succeeded").obj())
    refused = RejectedCreation(kind="Pod", name="digits-worker-0", code=400, reason="BadRequest", message=DECODING)
    assert creation_rejected(job, Effects(), refused, NOW) == Effects()


@pytest.mark.parametrize("running", [True, False])
def test_a_job_that_is_being_deleted_is_left_alone_though_it_is_not_valid(running: bool) -> None:
    status = make_mxjob().worker(1).condition("Created").condition("Running").obj().status
    assert reject("digits", status, ("wrong",), NOW, has_running_pods=running, is_deleting=True) == Effects()


JOB = make_mxjob("digits").gang().obj()
OURS = {
    "owner_api_version": "kubeflow.org/v1",
    "owner_kind": "MXJob",
    "owner_name": "digits",
    "owner_uid": JOB.metadata.uid,
}
ANOTHER_UID = {**OURS, "owner_uid": "of the job before"}


@pytest.mark.parametrize(
    ("found", "holder"),
    [
        (Found(**OURS), Holder.THE_JOB),
        (Found(**OURS, attempt="1"), Holder.LEFT_OVER),
        (Found(**OURS, deleting=True), Holder.LEFT_OVER),
        (Found(**ANOTHER_UID), Holder.LEFT_OVER),
        (Found(**{**ANOTHER_UID, "owner_name": "letters"}), Holder.ANOTHER),
        (Found(**{**ANOTHER_UID, "owner_kind": "PyTorchJob"}), Holder.ANOTHER),
        (Found(**{**ANOTHER_UID, "owner_api_version": "fioravanzo.org/v1alpha1"}), Holder.ANOTHER),
        (Found(**{**ANOTHER_UID, "owner_name": "letters"}, deleting=True), Holder.LEFT_OVER),
        (Found(), Holder.ANOTHER),
        (Found(deleting=True), Holder.LEFT_OVER),
    ],
)
def test_a_name_is_the_jobs_own_only_by_uid_and_attempt(found: Found, holder: Holder) -> None:
    assert holder_of_name(JOB, "0", found) is holder
