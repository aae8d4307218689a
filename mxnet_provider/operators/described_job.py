"""The arguments by which a DAG's author describes a job, and the MXJob that they mean."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Final

from airflow.providers.common.compat.sdk import AirflowException

from mxnet_operator.description import DescriptionError, MXJobDescription, Role, to_manifest
from mxnet_operator.description.checks import COUNTS, SECONDS, given_fields
from mxnet_operator.description.description import FIELDS, problems
from mxnet_operator.description.plain import plain
from mxnet_operator.description.pods import ROLES
from mxnet_provider.exceptions import MXNetManifestError
from mxnet_provider.job import manifest as manifests
from mxnet_provider.operators.manifest_file import ReadsManifestFile, file_name
from mxnet_provider.operators.other_operators import (
    refuse_airflow_secrets,
    refuse_other_names,
    what_was_meant,
)

if TYPE_CHECKING:
    from airflow.sdk import Context
    from jinja2 import Environment

_OF_THE_TASK: Final = frozenset({"name", "namespace"})
"""Fields from which the operator makes its own name and place for each try's job."""
_COUNTS_OF_A_ROLE: Final = frozenset({"replicas", "gpus"})
_NATIVE: Final = (
    "a template renders to a text: pass the XCom itself (TASK.output), or give the DAG"
    " render_template_as_native_obj=True"
)
_TEMPLATE_MARKS: Final = ("{{", "{%", "{#")


class JobDescriptionMixin(ReadsManifestFile):
    """An operator that is given an MXJob: a `manifest`, or the fields of a description, or fields over a manifest.

    The fields are those of `mxnet_operator.description.MXJobDescription`; what is set beside a manifest is merged over
    it as `kubectl patch` would. A model of `kubernetes.client` is taken wherever a mapping in Kubernetes' words is.

    Args:
        manifest: The MXJob: a mapping, YAML text, or a `.yaml`, `.yml` or `.json` file (a name on the DAG's
            template search path, or an absolute path). ConfigMaps, Secrets, PersistentVolumeClaims and Services
            in it are applied first, and stay. Manifests in an older API version (v1beta1, MXNetJob, ...) are
            converted to v1. (templated)
        name: Beginning of the job's name; a random suffix follows. Unset, the manifest's name or the task's id.
            (templated)
        namespace: Namespace of the job; unset, the manifest's, else the connection's, else the one that Airflow
            runs in, else `default`. (templated)
        allow_unknown_fields: Accept fields that this release doesn't know, such as those of a newer Kubernetes.
            If False, the task fails and names them before anything is created.
    """

    name: str | None
    namespace: str | None
    workers: Any
    servers: Any
    template_fields: Sequence[str] = ("manifest", *FIELDS)
    template_ext: Sequence[str] = (".yaml", ".yml", ".json")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "manifest": "yaml",
        **dict.fromkeys(
            ("command", "args", "env", "container_resources", "volumes", "node_selector", "labels", "annotations"),
            "json",
        ),
    }

    def __init__(
        self,
        *,
        manifest: Mapping[str, Any] | str | PurePath | None = None,
        image: str | None = None,
        command: Sequence[str] | None = None,
        args: Sequence[str] | None = None,
        env: Mapping[str, Any] | Sequence[Any] | None = None,
        env_from: Sequence[Any] | None = None,
        secrets: Sequence[str] | None = None,
        config_maps: Sequence[str] | None = None,
        workers: int | str | Role | Mapping[str, Any] | None = None,
        servers: int | str | Role | Mapping[str, Any] | None = None,
        schedulers: int | str | Role | Mapping[str, Any] | None = None,
        gpus_per_worker: int | str | None = None,
        gpu_resource: str | None = None,
        container_resources: Any | None = None,
        volumes: Sequence[Any] | None = None,
        volume_mounts: Sequence[Any] | None = None,
        image_pull_policy: str | None = None,
        image_pull_secrets: Sequence[Any] | None = None,
        init_containers: Sequence[Any] | None = None,
        node_selector: Mapping[str, str] | None = None,
        affinity: Any | None = None,
        tolerations: Sequence[Any] | None = None,
        service_account_name: str | None = None,
        security_context: Any | None = None,
        container_security_context: Any | None = None,
        priority_class_name: str | None = None,
        scheduler_name: str | None = None,
        runtime_class_name: str | None = None,
        pod_labels: Mapping[str, str] | None = None,
        pod_annotations: Mapping[str, str] | None = None,
        restart_policy: str | None = None,
        clean_pod_policy: str | None = None,
        ttl_seconds_after_finished: timedelta | int | str | None = None,
        active_deadline_seconds: timedelta | int | str | None = None,
        progress_deadline_seconds: timedelta | int | str | None = None,
        backoff_limit: int | str | None = None,
        restart_scope: str | None = None,
        success_policy: str | None = None,
        run_policy: Mapping[str, Any] | None = None,
        name: str | None = None,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        queue_name: str | None = None,
        placement: str | None = None,
        allow_unknown_fields: bool = False,
        **kwargs: Any,
    ) -> None:
        given = dict(locals())
        refuse_other_names(kwargs)
        refuse_airflow_secrets(secrets)
        try:
            super().__init__(**kwargs)
        except (TypeError, AirflowException) as error:  # Airflow 3 and 2
            if hints := what_was_meant(error, kwargs, FIELDS):
                raise TypeError(f"{error}; {hints}") from error
            raise
        self.manifest = manifest
        for field in FIELDS:
            setattr(self, field, given[field])
        self.allow_unknown_fields = allow_unknown_fields
        self._map_models()
        if found := problems(self._given_fields(), later=is_rendered_later):
            raise DescriptionError(found)

    def render_template_fields(self, context: "Context", jinja_env: "Environment | None" = None) -> None:
        """Render as every operator does, also within what a cluster policy has set."""
        self._map_models()
        super().render_template_fields(context, jinja_env)

    def given_manifest(self) -> dict[str, Any]:
        """Build the MXJob that the DAG's author gave, by manifest, description or both, as a dict of the caller's own.

        Raises:
            MXNetManifestError: with every mistake that was found, one to a line.
        """
        return self.described(self._description(), self._parsed())

    def described(self, description: MXJobDescription, manifest: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the MXJob of a description, over a manifest if there is one, or raise MXNetManifestError."""
        if manifest is None and description.image is None and not (description.workers or description.servers):
            raise MXNetManifestError("Give a manifest or an image; neither was given.")
        try:
            return to_manifest(description, manifest)
        except DescriptionError as e:
            raise _refusal(e) from e

    def _parsed(self) -> dict[str, Any] | None:
        if self.manifest is None:
            return None

        def tell(remark: str) -> None:
            self.log.info("The manifest as v1: %s", remark)

        return manifests.as_v1(manifests.parse(self.manifest), tell, allow_unknown=self.allow_unknown_fields)

    def _description(self, **instead: Any) -> MXJobDescription:
        given = {name: with_numbers(name, value) for name, value in self._given_fields().items()}
        try:
            return MXJobDescription(**{**given, **instead})
        except DescriptionError as e:
            raise _refusal(e, rendered={name for name, value in given.items() if isinstance(value, str)}) from e

    def _given_fields(self) -> dict[str, Any]:
        given = {field: getattr(self, field) for field in FIELDS if field not in _OF_THE_TASK}
        return {field: value for field, value in given.items() if value is not None}

    def _map_models(self) -> None:
        """Make mappings of models and roles, so that texts within them are rendered."""
        self.manifest = file_name(self.manifest, self.template_ext)
        for field in FIELDS:
            setattr(self, field, _as_mapping(getattr(self, field)))


def _as_mapping(value: Any) -> Any:
    if isinstance(value, Role):
        return plain(given_fields(value))
    if value.__class__.__module__.partition(".")[0] == "airflow":
        return value
    found = plain(value)
    # The very object where it is one already: Airflow knows by that which mapped values it must not render.
    return value if found == value else found


def is_rendered_later(value: Any) -> bool:
    """Whether Airflow fills the value in before the task runs: a template, or a reference to what a task returns."""
    if isinstance(value, str):
        return any(mark in value for mark in _TEMPLATE_MARKS)
    return not isinstance(value, int | float | Mapping | list | tuple | timedelta | None)


def number(field: str, value: Any) -> Any:
    is_number = field in COUNTS | SECONDS and isinstance(value, str) and value.strip().isdecimal()
    return int(value) if is_number else value


def with_numbers(field: str, value: Any) -> Any:
    """Return the value with its numbers read as `number` does, those of a role's own too."""
    if field in ROLES and isinstance(value, Mapping):
        return {key: number("workers", each) if key in _COUNTS_OF_A_ROLE else each for key, each in value.items()}
    return number(field, value)


def _refusal(error: DescriptionError, rendered: Collection[str] = ()) -> MXNetManifestError:
    """Word the mistakes; those of `rendered` fields, which a template has made a text, name what makes a list."""
    lines = [
        f"{problem.message.partition(': write ')[0]}; {_NATIVE}" if problem.path in rendered else problem.message
        for problem in error.problems
    ]
    return MXNetManifestError("The MXJob is invalid:\n" + "\n".join(f"- {line}" for line in lines))
