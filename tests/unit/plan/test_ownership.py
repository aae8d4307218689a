"""Whose an object is that has the name of a child which was to be created: `plan` judges the facts of it."""

import pytest
from builders import make_mxjob

from mxnet_operator.plan.rejection import Found, Holder, holder_of_name

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
