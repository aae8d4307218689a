"""The Airflow task that deletes an MXJob, such as the teardown of tasks that left theirs running."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mxnet_operator.client.job_client import JobRef
from mxnet_operator.kube.errors import ApiError
from mxnet_provider.cluster import ClusterAccessMixin
from mxnet_provider.exceptions import MXNetJobDeletedError, MXNetJobError, MXNetPermissionError
from mxnet_provider.options import EndOptions, Propagation, is_given

if TYPE_CHECKING:
    from airflow.sdk import Context


class MXNetJobDeleteOperator(ClusterAccessMixin):
    """Delete one MXJob, with its pods and Services; returns whether there was something to delete.

    A name alone could by now be another's: the uid says which job is meant. `MXNetJobOperator` pushes both as XComs,
    and the namespace: give all three. Without a namespace, of the task or of the connection, a job that isn't found
    may run in another, and the task fails.

    Args:
        job_name: Name of the job: `{{ ti.xcom_pull("train", key="job_name") }}`. (templated)
        job_uid: Uid of the job: `{{ ti.xcom_pull("train", key="job_uid") }}`. (templated)
        namespace: Namespace of the job: `{{ ti.xcom_pull("train", key="job_namespace") }}`; unset, the
            connection's, else the one that Airflow runs in, else `default`. (templated)
        missing_ok: If False, the task fails if the job is gone.
        propagation_policy: `Foreground` keeps the job visible until its pods are gone, `Background` doesn't.
        kwargs: As for every operator.
    """

    template_fields: Sequence[str] = (
        "job_name",
        "job_uid",
        "namespace",
        *ClusterAccessMixin.template_fields,
    )
    ui_color = "#f4d9d6"

    def __init__(
        self,
        *,
        job_name: str,
        job_uid: str,
        namespace: str | None = None,
        missing_ok: bool = True,
        propagation_policy: Propagation = "Foreground",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job_name = job_name
        self.job_uid = job_uid
        self.namespace = namespace
        self.missing_ok = missing_ok
        self.propagation_policy = EndOptions(propagation_policy=propagation_policy).propagation_policy

    def execute(self, context: "Context") -> bool:  # noqa: ARG002
        """Delete the job.

        Raises:
            MXNetJobError: name or uid are empty: the task that creates the job has not run.
            MXNetJobDeletedError: the job is gone, and `missing_ok` is False; or it isn't there, and may be in another
                namespace than the one that was assumed.
            MXNetPermissionError: the API server rejects it for want of a right, which it names.
        """
        if not is_given(self.job_name) or not is_given(self.job_uid):
            raise MXNetJobError(f"job_name ({self.job_name!r}) and job_uid ({self.job_uid!r}) must both say which job.")
        stated = self.namespace if is_given(self.namespace) else self.hook.stated_namespace()
        ref = JobRef(name=self.job_name, namespace=stated or self.hook.default_namespace(), uid=self.job_uid)
        try:
            deleted = self.hook.delete_job(ref, propagation_policy=self.propagation_policy)
        except ApiError as e:
            said = f"The API server rejected the deletion of {ref.title}: {e.message}"
            raise (MXNetPermissionError if e.code in (401, 403) else MXNetJobError)(said) from e
        if not deleted and stated is None:
            raise MXNetJobDeletedError(
                f"There is no {ref.title} with uid {ref.uid}. No namespace was given: the job may run in another. Give "
                "namespace=\"{{ ti.xcom_pull('...', key='job_namespace') }}\", of the task that created it."
            )
        if not deleted and not self.missing_ok:
            raise MXNetJobDeletedError(f"{ref.title} with uid {ref.uid} is gone.")
        self.log.info("Deleted %s." if deleted else "%s is gone already.", ref.title)
        return deleted
