"""Manifest of an MXJob from a description, alone or merged over another manifest.

The one rule of merging: what a description says is a strategic merge patch of the manifest, as `kubectl patch` applies
one to a Deployment, in which variables, volumes and mounts are whole. Mappings are merged key by key, containers by
name; a variable or volume replaces the one of its name, a mount that of its path; any other value, `command` and `args`
among them, replaces the manifest's. What is said of pods goes into the template of every replica type, what is said of
containers into the container `mxnet`, resources and GPUs into the Workers' (a tuning's TunerServers') alone. A role's
own words come last. The number of GPUs, a role's or else the job's, becomes one limit (`description.gpus`).
"""

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from mxnet_operator.api import names
from mxnet_operator.api.conversion import without_server_fields
from mxnet_operator.api.formats.mxjob import V1
from mxnet_operator.api.job_formats import format_of
from mxnet_operator.api.queue_labels import QUEUE_LABEL
from mxnet_operator.api.strategic_merge import MergeKeyError, strategic_merge
from mxnet_operator.api.structural import FieldError
from mxnet_operator.description.checks import DescriptionError, given_fields, role_of
from mxnet_operator.description.description import MXJobDescription
from mxnet_operator.description.gpus import with_common_gpus, with_role_gpus
from mxnet_operator.description.older_formats import in_v1
from mxnet_operator.description.plain import plain
from mxnet_operator.description.pods import ROLES, Placeholder

Object = dict[str, Any]

DEFAULT_RESTART_POLICY: Final = "ExitCode"
_CONTAINER: Final = ("image", "command", "args", "volume_mounts", "image_pull_policy", "container_security_context")
_POD: Final = (
    *("volumes", "init_containers", "node_selector", "affinity", "tolerations", "service_account_name"),
    *("security_context", "priority_class_name", "scheduler_name", "runtime_class_name"),
)
_METADATA: Final = ("pod_labels", "pod_annotations")
_RUN_POLICY: Final = (
    *("placement", "clean_pod_policy", "ttl_seconds_after_finished", "active_deadline_seconds"),
    *("progress_deadline_seconds", "backoff_limit", "restart_scope"),
)
_NAMES: Final = {
    "container_security_context": "securityContext",
    "pod_labels": "labels",
    "pod_annotations": "annotations",
}
"""Kubernetes' names of fields, where they are others."""
_OF_METADATA: Final = {"name", "namespace", "labels", "annotations", "queue_name"}
_WHOLE: Final = ("env", "volumes", "volumeMounts")
"""Lists of things that a description says whole: a source of one kind beside one of another would be no pod's."""
_WITH_RESOURCES: Final = (names.WORKER, names.TUNER_SERVER)
_FIELDS: Final = {**{replica_type: field for field, replica_type in ROLES.items()}, names.TUNER_SERVER: "servers"}
"""Field of a description that has the role, by replica type."""


def to_manifest(description: MXJobDescription, manifest: Mapping[str, Any] | None = None) -> Object:
    """Build the MXJob of a description, merged over `manifest` if there is one; arguments are not changed.

    What only the API server sets is left out of the manifest, such as a resourceVersion or a status.
    A manifest of an older format becomes the v1 job that it means, if the description says more than its metadata.
    The API server's own rules are not checked: `mxnet_operator.api.validation` does that.

    Raises:
        DescriptionError: with every mistake that was found in the description, or in a manifest of an older format.
    """
    given: Object = plain(given_fields(description))
    if manifest is None and given.get("image") is None and not _images_everywhere(given):
        raise DescriptionError(
            [FieldError("image", "FieldValueRequired", "Required value: give an image, or a manifest")]
        )
    try:
        if manifest is None:
            job = _built(given)
        else:
            base = plain(manifest) if given.keys() <= _OF_METADATA else in_v1(plain(manifest))
            job = _merged(given, without_server_fields(base))
    except MergeKeyError as error:
        raise DescriptionError([FieldError("", "FieldValueInvalid", str(error))]) from error
    return _with_job_fields(job, given)


def _built(given: Object) -> Object:
    workers = given.get("workers", 1)
    servers = _default_servers(workers) if given.get("servers") is None else given["servers"]
    schedulers = _default_schedulers(servers) if given.get("schedulers") is None else given["schedulers"]
    specs = {}
    for replica_type, role in zip(ROLES.values(), (schedulers, servers, workers), strict=True):
        own, _ = role_of(role)
        if _count(role) != 0:
            spec = {
                "replicas": own.get("replicas", 1),
                "restartPolicy": DEFAULT_RESTART_POLICY,
                "template": {"spec": {"containers": [{"name": names.CONTAINER}]}},
            }
            specs[replica_type] = _with_role(_with_common(spec, given, replica_type), given, replica_type)
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {},
        "spec": {"jobMode": "MXTrain", "mxReplicaSpecs": specs},
    }


def _merged(given: Object, manifest: Object) -> Object:
    job = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {}, **manifest}
    spec = job.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("mxReplicaSpecs"), dict):
        return job  # validation says what is missing
    specs: Object = dict(spec["mxReplicaSpecs"])
    written = {names.canonical_type(str(key)): key for key in specs}
    for key, replica_spec in specs.items():
        if isinstance(replica_spec, dict):
            specs[key] = _with_common(replica_spec, given, names.canonical_type(str(key)))
    roles = {field: given[field] for field in ROLES if given.get(field) is not None}
    if spec.get("jobMode") == "MXTune":
        return {**job, "spec": {**spec, "mxReplicaSpecs": _tuning_roles(specs, written, given, roles)}}
    if _count(roles.get("servers", 0)) != 0 and "schedulers" not in roles and names.SCHEDULER not in written:
        roles["schedulers"] = _default_schedulers(roles["servers"])
    for field in (each for each in ROLES if each in roles):
        key = written.get(ROLES[field], ROLES[field])
        if key not in specs and _count(roles[field]) == 0:
            continue
        merged = specs.get(key) or _like_a_worker(specs, written)
        specs[key] = _with_role(merged, {**given, **roles}, ROLES[field])
    return {**job, "spec": {**spec, "mxReplicaSpecs": specs}}


def _tuning_roles(specs: Object, written: Mapping[str | None, str], given: Object, roles: Object) -> Object:
    """Set the replicas of a tuning job: `servers` are its TunerServers; other roles are rejected."""
    for field in roles:
        if field != "servers":
            detail = "the manifest is a tuning (jobMode MXTune), which has none"
            raise DescriptionError([FieldError(field, "FieldValueInvalid", detail)])
    key = written.get(names.TUNER_SERVER)
    return specs if key is None or not roles else {**specs, key: _with_role(specs[key], given, names.TUNER_SERVER)}


def _with_job_fields(job: Object, given: Object) -> Object:
    metadata = dict(job["metadata"]) if isinstance(job.get("metadata"), dict) else {}
    for field in ("name", "namespace"):
        if given.get(field):
            metadata[field] = given[field]
            if field == "name":
                metadata.pop("generateName", None)
    patch: Object = {field: given[field] for field in ("labels", "annotations") if given.get(field)}
    policy = {**plain(given.get("run_policy") or {})}
    for name, value in _named(given, _RUN_POLICY).items():
        policy[name] = math.ceil(value.total_seconds()) if isinstance(value, timedelta) else value
    if given.get("queue_name"):
        patch["labels"] = {**patch.get("labels", {}), QUEUE_LABEL: given["queue_name"]}
    spec = job.get("spec")
    if isinstance(spec, dict):
        # kubeflow-training 1.8.1 can't list a v1 job without one.
        is_missing = spec.get("runPolicy") is None and format_of(job) is V1
        said: Object = {"runPolicy": policy} if policy or is_missing else {}
        if given.get("success_policy") is not None:
            said["successPolicy"] = given["success_policy"]
        spec = strategic_merge(spec, said)
    return {**job, "metadata": strategic_merge(metadata, patch), "spec": spec}


def _with_common(spec: Object, given: Object, replica_type: str | None) -> Object:
    """Merge what a description says of all replicas over the ReplicaSpec of a type."""
    has_resources = replica_type in _WITH_RESOURCES
    patched = _patched(spec, _template(given, resources=has_resources), given.get("restart_policy"))
    if replica_type is None or not has_resources:
        return patched
    own, _ = role_of(given.get(_FIELDS[replica_type]))
    return with_common_gpus(patched, given, own)


def _template(given: Object, *, resources: bool) -> Object:
    """Build a patch of the pod template; `resources` tells whether this replica type gets resources."""
    container = _named(given, _CONTAINER)
    if (env := given.get("env")) is not None:
        container["env"] = [_variable(*each) for each in env.items()] if isinstance(env, Mapping) else env
    env_from = [
        *({"secretRef": {"name": name}} for name in given.get("secrets") or ()),
        *({"configMapRef": {"name": name}} for name in given.get("config_maps") or ()),
    ]
    if given.get("env_from") is not None:
        env_from = [*env_from, *given["env_from"]] if env_from else given["env_from"]
    if env_from:
        container["envFrom"] = env_from
    if resources and given.get("container_resources"):
        container["resources"] = given["container_resources"]
    spec = _named(given, _POD)
    if given.get("image_pull_secrets") is not None:
        secrets = given["image_pull_secrets"]
        as_listed = isinstance(secrets, Placeholder)
        named = () if as_listed else (each if isinstance(each, Mapping) else {"name": each} for each in secrets)
        spec["imagePullSecrets"] = secrets if as_listed else list(named)
    if container:
        spec["containers"] = [{"name": names.CONTAINER, **container}]
    metadata = _named(given, _METADATA)
    return {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}


def _with_role(spec: Any, given: Object, replica_type: str) -> Any:
    """Merge the fields of a description's role over its ReplicaSpec; one that is malformed is left to validation."""
    if not isinstance(spec, dict):
        return spec
    field = _FIELDS[replica_type]
    own, replica_spec = role_of(given.get(field))
    if _is_complete(replica_spec.get("template")):
        spec = {key: value for key, value in spec.items() if key != "template"}
    result = _patched(spec, _template(own, resources=True), own.get("restart_policy"))
    if "replicas" in own:
        result["replicas"] = own["replicas"]
    return with_role_gpus(strategic_merge(result, replica_spec, whole=_WHOLE), given, own, field)


def _patched(replica_spec: Object, template: Object, restart_policy: Any) -> Object:
    policy = {} if restart_policy is None else {"restartPolicy": restart_policy}
    patch = {**policy, **({"template": template} if template else {})}
    return strategic_merge(replica_spec, patch, whole=_WHOLE)


def _count(role: Any) -> Any:
    return role_of(role)[0].get("replicas", 1)


def _default_servers(workers: Any) -> Any:
    count = _count(workers)
    if isinstance(count, Placeholder):
        return count.none_if_one()
    return count if count > 1 else 0


def _default_schedulers(servers: Any) -> Any:
    count = _count(servers)
    if isinstance(count, Placeholder):
        return count.one_if_any()
    return min(count, 1)


def _is_complete(template: Any) -> bool:
    """Whether a template names the image of its container `mxnet`: then it replaces the common template."""
    spec = template.get("spec") if isinstance(template, Mapping) else None
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    return isinstance(containers, list) and any(
        isinstance(each, Mapping) and each.get("name") == names.CONTAINER and each.get("image") for each in containers
    )


def _images_everywhere(given: Object) -> bool:
    roles = [role for field in ROLES if (role := given.get(field)) is not None and _count(role) != 0]
    return "workers" in given and all(
        role_of(role)[0].get("image") is not None or _is_complete(role_of(role)[1].get("template")) for role in roles
    )


def _like_a_worker(specs: Object, written: Mapping[str | None, str]) -> Object:
    """Build the ReplicaSpec of a role that a manifest lacks: the Workers', without their resources."""
    worker = specs.get(written.get(names.WORKER, ""))
    if not isinstance(worker, dict):
        return {}
    spec = {key: value for key, value in worker.items() if key != "replicas"}
    template = spec.get("template")
    pod = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(pod, dict) or not isinstance(pod.get("containers"), list):
        return spec
    lean = [
        {key: value for key, value in each.items() if key != "resources"} if isinstance(each, dict) else each
        for each in pod["containers"]
    ]
    return {**spec, "template": {**template, "spec": {**pod, "containers": lean}}}  # type: ignore[dict-item]


def _named(given: Object, fields: Iterable[str]) -> Object:
    """Return the fields that are given, by Kubernetes' names."""
    return {_NAMES.get(each) or _camel(each): given[each] for each in fields if given.get(each) is not None}


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(map(str.capitalize, rest))


def _variable(name: str, value: Any) -> Object:
    if not isinstance(value, Mapping):
        return {"name": name, "value": value}
    return {"name": name, "valueFrom": value.get("valueFrom", value)}
