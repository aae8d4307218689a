"""The Airflow task that is one MXJob: it creates it, shows its log, waits for it, and returns its result."""

import contextlib
import json
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.sdk import BaseOperator
from kubernetes.client.exceptions import ApiException

from mxnet_operator.api.conditions import FAILED, SUCCEEDED, job_state, terminal_message
from mxnet_operator.api.validation import unknown_fields, validate
from mxnet_provider import identity, replicas
from mxnet_provider import manifest as manifests
from mxnet_provider.exceptions import (
    MXNetJobError,
    MXNetJobFailedError,
    MXNetJobNameTakenError,
    MXNetManifestError,
)
from mxnet_provider.hooks.mxnet_job import MXNetJobHook
from mxnet_provider.operators.replica_logs import ReplicaLogs

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context

_REFUSED_FOR_GOOD = frozenset({400, 401, 403, 422})


class MXNetJobOperator(BaseOperator):
    """Run an MXJob to its end and return what it came to.

    The job is given either as a `manifest` or by `image` and the other builder arguments. It is validated before it is
    sent, and a mistake in it fails the task for good, without retries. Its name is the manifest's (or `name`, or
    the task's id) and a suffix that is another for each run, mapped task and try, so that two never collide.

    While the job runs, its log appears in the task's log, and its state whenever it changes. When it fails, the task
    fails with the words of the job's own Failed condition: which replica, its exit code, its last lines. When the task
    is killed, times out or is marked as failed, the job is deleted.

    The returned value is small JSON: `name`, `namespace`, `uid`, `state`, `started_at`, `completed_at` (RFC 3339),
    `duration_s`, `replicas` (a list of `pod`, `type`, `index`, `created_at`, `started_at`, `finished_at`,
    `exit_code`), and `result`: what worker 0 wrote to its `/dev/termination-log`, parsed if it is JSON.
    Replicas and result are read from the job's pods: with `cleanPodPolicy: All` they may be gone by then. Name,
    namespace and uid are also pushed as XComs `job_name`, `job_namespace` and `job_uid` as soon as the job exists.

    Args:
        manifest: The MXJob: a dict, YAML text, or the name of a `.yaml`, `.yml` or `.json` file on the DAG's template
            search path. (templated)
        image: Builder: the image that every replica runs. (templated)
        command: Builder: the container's command. (templated)
        args: Builder: the container's arguments. (templated)
        env: Builder: environment variables of every replica. (templated)
        workers: Builder: number of workers; 1 if not given.
        servers: Builder: number of parameter servers; 0 if not given.
        schedulers: Builder: 1 or 0; if not given, 1 where there are servers.
        container_resources: Builder: `requests` and `limits` of each worker's container. Schedulers and servers ask for
            none (they need no GPU); to set theirs, write a manifest. (templated)
        name: Beginning of the job's name, in place of the manifest's. (templated)
        namespace: The job's namespace; if not given the manifest's, the connection's, the one that Airflow runs
            in, `default`, the first there is. (templated)
        labels: Labels for the job, over the manifest's. (templated)
        annotations: Annotations for the job, over the manifest's. (templated)
        kubernetes_conn_id: Connection of type `kubernetes`. Where `kubernetes_default` does not exist, the
            in-cluster configuration or kubectl's own (`KUBECONFIG`, `~/.kube/config`) is used. (templated)
        in_cluster: Use the service account of the pod that Airflow runs in.
        config_file: Path of a kubeconfig, in place of the connection's. (templated)
        cluster_context: A context of the kubeconfig. (templated)
        wait_for_completion: If False, the task succeeds once the job has been created.
        poll_interval: Seconds between two looks at the job.
        get_logs: Whether the job's log appears in the task's log.
        log_replicas: The replicas whose logs appear while they run, such as `worker-0` or `scheduler-0`.
        log_tail_on_failure: How many of the last lines to show of a failed replica whose log was not shown before.
        on_finish_action: What becomes of a finished job: `keep` leaves it to its `ttlSecondsAfterFinished`.
        kwargs: As for every operator.
    """

    template_fields: Sequence[str] = (
        "manifest",
        "image",
        "command",
        "args",
        "env",
        "container_resources",
        "name",
        "namespace",
        "labels",
        "annotations",
        "kubernetes_conn_id",
        "config_file",
        "cluster_context",
    )
    template_ext: Sequence[str] = (".yaml", ".yml", ".json")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "manifest": "yaml",
        "command": "json",
        "args": "json",
        "env": "json",
        "container_resources": "json",
        "labels": "json",
        "annotations": "json",
    }
    ui_color = "#cfe2f3"

    def __init__(
        self,
        *,
        manifest: Mapping[str, Any] | str | None = None,
        image: str | None = None,
        command: Sequence[str] | None = None,
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        workers: int | None = None,
        servers: int | None = None,
        schedulers: int | None = None,
        container_resources: Mapping[str, Any] | None = None,
        name: str | None = None,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        kubernetes_conn_id: str = MXNetJobHook.default_conn_name,
        in_cluster: bool | None = None,
        config_file: str | None = None,
        cluster_context: str | None = None,
        wait_for_completion: bool = True,
        poll_interval: float = 10.0,
        get_logs: bool = True,
        log_replicas: Sequence[str] = ("worker-0",),
        log_tail_on_failure: int = 200,
        on_finish_action: Literal["keep", "delete", "delete_succeeded"] = "keep",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.manifest = manifest
        self.image = image
        self.command = command
        self.args = args
        self.env = env
        self.workers = workers
        self.servers = servers
        self.schedulers = schedulers
        self.container_resources = container_resources
        self.name = name
        self.namespace = namespace
        self.labels = labels
        self.annotations = annotations
        self.kubernetes_conn_id = kubernetes_conn_id
        self.in_cluster = in_cluster
        self.config_file = config_file
        self.cluster_context = cluster_context
        self.wait_for_completion = wait_for_completion
        self.poll_interval = poll_interval
        self.get_logs = get_logs
        self.log_replicas = log_replicas
        self.log_tail_on_failure = log_tail_on_failure
        self.on_finish_action = on_finish_action
        self._job: dict[str, Any] | None = None
        self._killed = threading.Event()

    @cached_property
    def hook(self) -> MXNetJobHook:
        """The hook for the cluster that the job runs in."""
        return MXNetJobHook(
            kubernetes_conn_id=self.kubernetes_conn_id,
            in_cluster=self.in_cluster,
            config_file=self.config_file,
            cluster_context=self.cluster_context,
        )

    def execute(self, context: "Context") -> dict[str, Any]:
        """Create the job, wait for it, and return what it came to.

        Raises:
            MXNetManifestError: the manifest has mistakes, or the API server refuses the job for good.
            MXNetJobFailedError: the job failed; the message is that of its Failed condition.
            MXNetJobDeletedError: the job was deleted, or replaced, before it had finished.
            MXNetJobNameTakenError: the job's name belongs to something else.
        """
        job = self._job = self._create(self.manifest_to_create(context), context)
        metadata = job["metadata"]
        try:
            for key in ("name", "namespace", "uid"):
                context["ti"].xcom_push(key=f"job_{key}", value=metadata[key])
            if not self.wait_for_completion:
                return summary(job, [])
            finished = self._wait(job)
        except KeyboardInterrupt:  # `airflow dags test` calls no on_kill
            self.on_kill()
            raise
        pods = self.hook.replica_pods(finished)
        state = job_state(finished)
        if state in (SUCCEEDED, FAILED) and self.on_finish_action in ("delete", f"delete_{state.lower()}"):
            self.hook.delete_job(metadata["name"], metadata["namespace"], metadata["uid"])
            self.log.info("Deleted %s, which has finished.", _title(job))
        if state != SUCCEEDED:
            raise MXNetJobFailedError(f"{_title(job)} failed: {terminal_message(finished)}")
        return summary(finished, pods)

    def on_kill(self) -> None:
        """Delete the job that this try created; another that has its name by now is left alone."""
        self._killed.set()
        if self._job is not None:
            metadata = self._job["metadata"]
            if self.hook.delete_job(metadata["name"], metadata["namespace"], metadata["uid"]):
                self.log.info("Deleted %s, because the task was killed.", _title(self._job))

    def manifest_to_create(self, context: "Context") -> dict[str, Any]:
        """The MXJob exactly as it is sent, with its final name, namespace and labels.

        Raises:
            MXNetManifestError: with every mistake that was found, one to a line.
        """
        manifest = self._given_manifest()
        metadata = manifests.metadata_of(manifest)
        ti = context["ti"]
        base = self.name or metadata.get("name") or str(metadata.pop("generateName", "")).rstrip("-")
        metadata["name"] = identity.job_name(
            str(base or identity.base_name(self.task_id)), manifests.replica_counts(manifest), ti
        )
        metadata["namespace"] = self.namespace or metadata.get("namespace") or self.hook.default_namespace()
        metadata["labels"] = {**(metadata.get("labels") or {}), **(self.labels or {}), **identity.labels(ti)}
        if self.annotations:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **self.annotations}
        if errors := [error.message for error in (*validate(manifest), *unknown_fields(manifest))]:
            raise MXNetManifestError("The MXJob is invalid:\n" + "\n".join(f"- {error}" for error in errors))
        return manifest

    def render_template(
        self,
        content: Any,
        context: "Context",
        jinja_env: "jinja2.Environment | None" = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """As every operator, except that only `manifest` itself can name a file.

        Airflow takes any string that ends in `.yaml` for one, so that `args=["--config", "conf.yaml"]` would not work.
        """
        if isinstance(content, str) and content is not self.manifest:
            template = (jinja_env or self.get_template_env()).from_string(content)
            return self._render(template, context)
        return super().render_template(content, context, jinja_env, seen_oids)

    def resolve_template_files(self) -> None:
        """Read the manifest's file, and none that an argument happens to name."""
        lists = {field: value for field in ("command", "args") if (value := getattr(self, field)) is not None}
        for field in lists:
            setattr(self, field, None)
        super().resolve_template_files()
        for field, value in lists.items():
            setattr(self, field, value)

    def _given_manifest(self) -> dict[str, Any]:
        built_from = {
            "image": self.image,
            "command": self.command,
            "args": self.args,
            "env": self.env,
            "workers": self.workers,
            "servers": self.servers,
            "schedulers": self.schedulers,
            "container_resources": self.container_resources,
        }
        given = [key for key, value in built_from.items() if value is not None]
        if self.manifest is not None:
            if given:
                raise MXNetManifestError(f"Give either manifest or {', '.join(given)}, not both.")
            return manifests.parse(self.manifest)
        if self.image is None:
            raise MXNetManifestError("Give either manifest or image; neither was given.")
        servers = self.servers or 0
        return manifests.build(
            image=self.image,
            command=self.command,
            args=self.args,
            env=self.env,
            workers=1 if self.workers is None else self.workers,
            servers=servers,
            schedulers=min(servers, 1) if self.schedulers is None else self.schedulers,
            resources=self.container_resources,
        )

    def _create(self, manifest: dict[str, Any], context: "Context") -> dict[str, Any]:
        metadata = manifest["metadata"]
        try:
            job = self.hook.create_job(manifest)
        except ApiException as e:
            status = _status(e)
            if status.get("reason") == "AlreadyExists":
                return self._adopt(metadata["name"], metadata["namespace"], context)
            message = f"The API server refused {_title(manifest)}: {status.get('message') or e}"
            if e.status in _REFUSED_FOR_GOOD:
                raise MXNetManifestError(message) from e
            raise MXNetJobError(message) from e
        self.log.info("Created %s.", _title(job))
        return job

    def _adopt(self, name: str, namespace: str, context: "Context") -> dict[str, Any]:
        """The job of that name, if it is ours: then the reply to its creation was lost, and was asked for again."""
        job = self.hook.get_job(name, namespace)
        if job is None or not identity.is_ours(job, identity.labels(context["ti"])):
            raise MXNetJobNameTakenError(f"MXJob {namespace}/{name} exists and was not created by this task.")
        self.log.info("%s had been created; the API server's reply was lost.", _title(job))
        return job

    def _wait(self, job: dict[str, Any]) -> dict[str, Any]:
        logs = ReplicaLogs(self.hook, self.log_replicas if self.get_logs else (), self.log)
        seen = ""

        def observe(current: dict[str, Any]) -> None:
            nonlocal seen
            if (state := job_state(current)) != seen:
                seen = state
                self.log.info("%s: %s%s", _title(current), state, _counts(current))
            logs.follow(current)

        with logs:
            finished = self.hook.wait(job, poll_interval=self.poll_interval, observe=observe, stop=self._killed)
            if finished is None:
                raise MXNetJobError(f"{_title(job)} was deleted, because the task was killed.")
            logs.drain()
        if self.get_logs and job_state(finished) == FAILED:
            logs.show_failed(finished, tail_lines=self.log_tail_on_failure)
        return finished


def summary(job: Mapping[str, Any], pods: list[dict[str, Any]]) -> dict[str, Any]:
    """What a task returns about its job: small, and JSON."""
    status = job.get("status") or {}
    started, completed = status.get("startTime"), status.get("completionTime")
    return {
        "name": job["metadata"]["name"],
        "namespace": job["metadata"]["namespace"],
        "uid": job["metadata"]["uid"],
        "state": job_state(job),
        "started_at": started,
        "completed_at": completed,
        "duration_s": _seconds_between(started, completed),
        "message": terminal_message(job),
        "replicas": replicas.summary(pods),
        "result": replicas.result(pods),
    }


def _seconds_between(started: str | None, completed: str | None) -> float | None:
    if not started or not completed:
        return None
    return (datetime.fromisoformat(completed) - datetime.fromisoformat(started)).total_seconds()


def _counts(job: Mapping[str, Any]) -> str:
    statuses = (job.get("status") or {}).get("replicaStatuses") or {}
    active = [f"{replica_type} {status['active']}" for replica_type, status in statuses.items() if status.get("active")]
    return f" ({', '.join(active)} active)" if active else ""


def _title(job: Mapping[str, Any]) -> str:
    return f"MXJob {job['metadata']['namespace']}/{job['metadata']['name']}"


def _status(e: ApiException) -> dict[str, Any]:
    with contextlib.suppress(TypeError, ValueError):
        body = json.loads(e.body)
        if isinstance(body, dict):
            return body
    return {}
