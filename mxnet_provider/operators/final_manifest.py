"""The MXJob exactly as a task creates it: named, labelled for its task, validated, the objects beside it applied."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from mxnet_operator.kube.errors import ApiError
from mxnet_provider.callbacks import callbacks_of
from mxnet_provider.exceptions import failure
from mxnet_provider.job import manifest as manifests
from mxnet_provider.job import task_labels
from mxnet_provider.operators.lease_times import deadline_seconds
from mxnet_provider.operators.task_options import TaskOptionsMixin

if TYPE_CHECKING:
    from airflow.sdk import Context


class FinalManifestMixin(TaskOptionsMixin):
    """An operator that creates the MXJob that it is given."""

    def dry_run(self) -> None:
        """Print the MXJob that would be created; nothing is sent.

        Raises:
            MXNetManifestError: with every mistake in the MXJob, one to a line.
        """
        manifest = self._final_manifest({}, task_labels.new_token())
        self.log.info("%s", yaml.safe_dump(manifest, sort_keys=False))
        manifests.refuse(manifests.mistakes(manifest, allow_unknown=self.allow_unknown_fields))

    def manifest_to_create(self, context: "Context", token: str) -> dict[str, Any]:
        """Return the MXJob exactly as it is sent, with its final name, namespace and labels.

        Raises:
            MXNetManifestError: with every mistake that was found, one to a line.
        """
        manifest = self._final_manifest(task_labels.labels(context["ti"], token, self.retries or 0), token)
        manifests.add_environment(manifest, self._parent_run(context["ti"]))
        for callback in callbacks_of(self.callbacks):  # one that fails here fails the task: there is no job yet
            operator: Any = self
            callback.on_manifest_created(manifest=manifest, operator=operator, context=context)
        ends_with_task = self.wait_for_completion and self._end_options.on_kill_action != "keep"
        if self.execution_timeout is not None and ends_with_task:
            tries_left = context["ti"].max_tries - context["ti"].try_number + 2
            between = (self._end_options.lease or 0.0) + self._delay_before_retry(context)
            manifests.set_deadline(manifest, deadline_seconds(self.execution_timeout, tries_left, between))
        manifests.refuse(manifests.mistakes(manifest, allow_unknown=self.allow_unknown_fields))
        return manifest

    def _with_objects_applied(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Apply what the given manifest has beside the job, such as a ConfigMap; return the job to create."""
        objects = [] if self.manifest is None else manifests.parse_all(self.manifest)[1]
        for each in objects:
            namespace = each["metadata"].get("namespace") or manifest["metadata"]["namespace"]
            title = f"{each['kind']} {namespace}/{each['metadata']['name']}"
            try:
                is_new = self.hook.apply_object(each, namespace)
            except ApiError as e:
                raise failure(e, f"{title}, which the manifest has beside the job") from e
            self.log.info("%s %s.", "Created" if is_new else "Found, and patched by the manifest,", title)
        return manifest

    def _parent_run(self, ti: Any) -> dict[str, str]:
        """Return the variables by which OpenLineage's clients in pods know the task as the parent of their runs."""
        try:
            from airflow.providers.openlineage import conf  # noqa: PLC0415 - many have no such provider
            from airflow.providers.openlineage.plugins import macros  # noqa: PLC0415

            if conf.is_disabled():
                return {}
            return {
                "OPENLINEAGE_PARENT_ID": macros.lineage_parent_id(ti),
                "OPENLINEAGE_ROOT_PARENT_ID": macros.lineage_root_parent_id(ti),
            }
        except ImportError:
            return {}
        except Exception as e:
            self.log.warning("OpenLineage gave the job no parent run: %s: %s", type(e).__name__, e)
            return {}

    def _final_manifest(self, labels: Mapping[str, str], token: str) -> dict[str, Any]:
        manifest = self.given_manifest()
        metadata = manifest["metadata"]
        written = metadata.get("name") or str(metadata.pop("generateName", "")).rstrip("-")
        base = task_labels.base_name(self.name or self.task_id) if self.name or not written else str(written)
        metadata["name"] = task_labels.job_name(base, manifests.replica_counts(manifest), token)
        metadata["namespace"] = self._namespace_by(metadata)
        manifests.add_labels(metadata, labels)
        manifests.label_templates(manifest, labels)
        if self._end_options.termination_grace_period is not None:
            manifests.set_grace_period(manifest, self._end_options.termination_grace_period)
        return manifest

    def _given_namespace(self) -> str:
        """Return the namespace of the task's jobs as its arguments say it, whatever a callback makes of it."""
        metadata = {} if self.manifest is None else manifests.parse(self.manifest).get("metadata")
        return str(self._namespace_by(metadata if isinstance(metadata, dict) else {}))

    def _namespace_by(self, metadata: Mapping[str, Any]) -> Any:
        return self.namespace or metadata.get("namespace") or self.hook.default_namespace()
