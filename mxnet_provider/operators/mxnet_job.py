"""The Airflow task that is one MXJob: it creates it, shows its log, waits for it, and returns its result."""

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NoReturn

import msgspec
import yaml
from airflow.providers.common.compat.sdk import AirflowTaskTimeout, conf

from mxnet_operator.api import names
from mxnet_operator.api.conditions import SUCCEEDED, TERMINAL, job_state
from mxnet_operator.api.storable import storable
from mxnet_operator.readers.volumes import NOTHING_KEPT
from mxnet_provider import airflow_versions
from mxnet_provider.callbacks import MXNetJobCallback, callbacks_of
from mxnet_provider.cluster import ClusterAccessMixin
from mxnet_provider.exceptions import MXNetJobError, MXNetJobUnreachableError, failure
from mxnet_provider.hooks import api_errors
from mxnet_provider.job import event as events
from mxnet_provider.job import kill, replicas, task_labels
from mxnet_provider.job import manifest as manifests
from mxnet_provider.job.completion import completion_of
from mxnet_provider.job.event import Event
from mxnet_provider.job.holder import Lease
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.job.summary import summary
from mxnet_provider.links.mxnet_job import MXNetJobLink, MXNetLogsLink
from mxnet_provider.operators.conclusion import conclude
from mxnet_provider.operators.described_job import JobDescriptionMixin
from mxnet_provider.operators.failure_logs import show_events, show_failed
from mxnet_provider.operators.lease_times import deadline_seconds, delay_before_retry, lease_seconds
from mxnet_provider.operators.task_job import TaskJob
from mxnet_provider.options import (
    DEFAULT_CONNECTION,
    DEFAULT_LEASE,
    EndOptions,
    FinishAction,
    LogOptions,
    Propagation,
    WaitOptions,
    exit_codes,
    in_seconds,
    limit_in_seconds,
    require_result_from,
    whole_seconds,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from mxnet_provider.job.job_ref import JobRef


_OF_AN_ASSET: Final = ("name", "namespace", "uid", "result", "files")
"""Parts of the returned value that an asset's event has as its `extra`."""
_OUT_OF_TIME: Final = "the execution_timeout of its task is over"


class MXNetJobOperator(ClusterAccessMixin, JobDescriptionMixin):
    """Run an MXJob to its end and return what it came to.

    The job is given as a `manifest`, or by `image` and the other fields of a description, which every door to MXJobs
    takes alike; beside a manifest they are merged over it, as `kubectl patch` would. Wherever a mapping in Kubernetes'
    words is taken, a model of `kubernetes.client` is, too. The job is validated before it is sent, and a mistake in it
    fails the task for good, without retries. Its name is the manifest's (or `name`, or the task's id) and a suffix
    that is another for each job, so that two never collide.

    A retry finds the job that an earlier try has left running, by a random token that was stored before the job was
    created, and goes on waiting for it; a task that is cleared gets a new job. No job is ever taken over, or deleted,
    because of its name alone.

    While the job runs, its log appears in the task's log, and its state whenever it changes. When it fails, the task
    fails with the words of the job's own Failed condition: which replica, its exit code, its last lines. When the task
    is cleared, marked as failed or succeeded, or takes longer than its `execution_timeout`, the job is deleted.

    Deferred (`deferrable=True`), all that happens in Airflow's triggerer, and no worker waits.

    The returned value is small JSON: `name`, `namespace`, `uid`, `state`, `started_at`, `completed_at` (RFC 3339),
    `duration_s`, `replicas` (a list of `pod`, `type`, `index`, `created_at`, `started_at`, `finished_at`,
    `exit_code`, `outcome`: `unfinished`, `succeeded`, `failed` or `stopped`), `result`: what worker 0 wrote to its
    `/dev/termination-log`, parsed if it is JSON, and `files`: the volumes that outlive the pods, such as
    `claim models at /models`. The task's log names them at its end.
    The result comes from the job's status (from the pods where an older controller left none there); `replicas` are
    read from the pods: with `cleanPodPolicy: All` they may be gone by then. As soon as the job exists, its name,
    namespace, uid and address are XComs: `job_name`, `job_namespace`, `job_uid`, `job_url`.
    What the first of `log_replicas` prints as `Epoch[3] Validation-accuracy=0.98` becomes the XCom `metrics`
    (`{"Validation-accuracy": [[3, 0.98]]}`) and Airflow's gauges `mxnet_job.validation_accuracy` and `mxnet_job.epoch`.

    Args:
        manifest: The MXJob: a dict, YAML text, or a `.yaml`, `.yml` or `.json` file: its name on the DAG's template
            search path, or its absolute path, as text or a Path. ConfigMaps, Secrets, PersistentVolumeClaims and
            Services beside the job are applied before it is created, and stay. One of an older version, such as v1beta1
            or MXNetJob, is created as the v1 MXJob that it means. (templated)
        image: The image of the container `mxnet`. (templated)
        command: Its command, a list. (templated)
        args: Its arguments, a list. (templated)
        env: Its variables: a mapping of names to texts or to EnvVarSources (`{"secretKeyRef": {...}}`), or a list of
            EnvVars. (templated)
        env_from: A list of EnvFromSources. (templated)
        secrets: Names of Secrets whose keys all become variables. (templated)
        config_maps: Names of ConfigMaps whose keys all become variables. (templated)
        workers: How many train, or a `mxnet_operator.description.Role`, or a ReplicaSpec; 1 if not given. (templated)
        servers: How many keep parameters, or a `Role`, or a ReplicaSpec. If not given, as many as there are workers, as
            MXNet's launcher has it; a single worker trains alone, without any. (templated)
        schedulers: 1 or 0, or a `Role`, or a ReplicaSpec; if not given, 1 where there are servers. (templated)
        gpus_per_worker: GPUs of each Worker. (templated)
        gpu_resource: The name of the GPUs' resource; `nvidia.com/gpu` if not given. (templated)
        container_resources: `requests` and `limits` of each worker's container. Schedulers and servers ask for none
            (they need no GPU), unless their role gives its own. (templated)
        volumes: Volumes of the pod. (templated)
        volume_mounts: Where the container finds them. (templated)
        image_pull_policy: Always, IfNotPresent or Never. (templated)
        image_pull_secrets: Names of Secrets, or LocalObjectReferences, for the images' registry. (templated)
        init_containers: Containers that run to their end before. (templated)
        node_selector: Labels that a node must have. (templated)
        affinity: An Affinity. (templated)
        tolerations: Tolerations of the taints of nodes. (templated)
        service_account_name: What the pod runs as towards the API server. (templated)
        security_context: Of the pod. (templated)
        container_security_context: Of the container. (templated)
        priority_class_name: The PriorityClass of the pod. (templated)
        scheduler_name: The Kubernetes scheduler that places it. (templated)
        runtime_class_name: The RuntimeClass of the pod. (templated)
        pod_labels: Labels of the pods. (templated)
        pod_annotations: Annotations of the pods. (templated)
        restart_policy: Never, OnFailure, Always or ExitCode, of all replicas; ExitCode if not given. (templated)
        clean_pod_policy: Which pods of a finished job are deleted: None, Running or All. (templated)
        ttl_seconds_after_finished: Seconds (or a timedelta) after which a finished job is deleted. (templated)
        active_deadline_seconds: Seconds (or a timedelta) after which the job fails. (templated)
        progress_deadline_seconds: Seconds (or a timedelta) within which all pods must have started. (templated)
        backoff_limit: Retries before the job fails; 6 if not given. (templated)
        restart_scope: What a retry restarts: Job (all replicas) or Replica. (templated)
        success_policy: Who must exit with 0: Scheduler or AllWorkers. (templated)
        run_policy: Further fields of spec.runPolicy. (templated)
        name: Beginning of the job's name, in place of the manifest's; what no name may have becomes `-`. (templated)
        namespace: The job's namespace; if not given the manifest's, the connection's, the one that Airflow runs in,
            `default`, the first there is. (templated)
        labels: Labels of the job; `pod_labels` are those of its pods. (templated)
        annotations: Annotations of the job. (templated)
        queue_name: A queue of Kueue's that starts the job when there is room; till then it is Suspended. (templated)
        placement: Pack (Workers on few nodes, Servers on many) or Exclusive (few nodes, no other job's). (templated)
        kubernetes_conn_id: Connection of type `kubernetes`. Where `kubernetes_default` does not exist, the
            in-cluster configuration or kubectl's own (`KUBECONFIG`, `~/.kube/config`) is used. (templated)
        in_cluster: Use the service account of the pod that Airflow runs in.
        config_file: Path of a kubeconfig, in place of the connection's; the triggerer needs it too. (templated)
        cluster_context: A context of the kubeconfig. (templated)
        wait_for_completion: If False, the task succeeds once the job has been created, and `deferrable` has no meaning.
        deferrable: Wait in the triggerer instead of a worker. Default: `[operators] default_deferrable`.
        durable: Whether a retry goes on with the job of the try before. If False, each try makes a job of its own.
        reuse_succeeded_on_retry: Whether a retry whose job has succeeded meanwhile returns that job's result.
        poll_interval: Seconds (or a timedelta) between two polls of the job while it runs, give or take a fifth. While
            it does not, or waits for something, it is polled every five seconds at least, so that the task's log
            says for what.
        startup_timeout: Seconds (or a timedelta) that the job may wait for its pods to run before the task fails and
            ends it; None, or infinity, for no limit. The time in which the job is suspended does not count, nor what
            tries before this one have waited.
        api_outage_tolerance: Seconds (or a timedelta) that the API server may be away before the task fails; the job is
            left running, for a retry to go on with.
        get_logs: Whether the job's log appears in the task's log. Without it there is no XCom `metrics`.
        log_replicas: The replicas whose logs appear while they run, such as `worker-0` or `scheduler-0`.
        log_tail_on_failure: How many of the last lines to show of a failed replica whose log was not shown before.
        log_events_on_failure: Whether to show the cluster's warnings about a job that failed or did not start.
        on_finish_action: What is done with a finished job: `keep` leaves it to its `ttlSecondsAfterFinished`.
        on_kill_action: What is done with an unfinished job when its task is killed, cleared or out of time: `delete`,
            `suspend` (a retry resumes it), or `keep` (a retry goes on waiting for it).
        propagation_policy: `Foreground` keeps a deleted job visible until its pods are gone, `Background` does not.
        skip_on_exit_code: An exit code, or several: where the job fails and a replica of it has ended with one of
            them, the task is skipped and does not fail, as in KubernetesPodOperator.
        termination_grace_period: Seconds (or a timedelta) that the pods have to end when the job is deleted, over the
            manifest's.
        callbacks: A class derived from MXNetJobCallback, or several: functions that are called in the worker while the
            task goes on, as KubernetesPodOperator has them.
        result_from: Where the result comes from; None for no result.
        lease: For how long (seconds, or a timedelta) the job goes on when nobody waits for it any more: a dead worker
            or triggerer, a deletion that could not be delivered. Then the controller deletes or suspends it, as
            `on_kill_action` says. It lasts four times `poll_interval` at least, and a retry that is due is waited for:
            for as long as `retry_delay` and the rules of an ExceptionRetryPolicy say. Beside a `retry_policy` of your
            own, choose it longer than that ever delays.
            None, `wait_for_completion=False` and `on_kill_action="keep"` leave the job without: it may run on for ever.
        allow_unknown_fields: Whether the manifest may have fields that this release does not know, of a newer
            Kubernetes say. If not, the task fails and names them before anything is created.
        kwargs: As for every operator.
    """

    template_fields: Sequence[str] = (
        *JobDescriptionMixin.template_fields,
        "kubernetes_conn_id",
        "config_file",
        "cluster_context",
    )
    operator_extra_links = (MXNetJobLink(), MXNetLogsLink())
    ui_color = "#cfe2f3"

    default_log_replicas: ClassVar[Sequence[str]] = ("worker-0",)
    result_of: ClassVar[str] = replicas.RESULT_OF
    """The replica whose termination message is the result."""
    plural: ClassVar[str] = names.PLURAL

    def __init__(
        self,
        *,
        kubernetes_conn_id: str = DEFAULT_CONNECTION,
        in_cluster: bool | None = None,
        config_file: str | None = None,
        cluster_context: str | None = None,
        wait_for_completion: bool = True,
        deferrable: bool | None = None,
        durable: bool = True,
        reuse_succeeded_on_retry: bool = True,
        poll_interval: timedelta | float = WaitOptions.poll_interval,
        startup_timeout: timedelta | float | None = WaitOptions.startup_timeout,
        api_outage_tolerance: timedelta | float = WaitOptions.api_outage_tolerance,
        get_logs: bool = LogOptions.get_logs,
        log_replicas: Sequence[str] | None = None,
        log_tail_on_failure: int = LogOptions.log_tail_on_failure,
        log_events_on_failure: bool = LogOptions.log_events_on_failure,
        on_finish_action: FinishAction = EndOptions.on_finish_action,
        on_kill_action: kill.Action = EndOptions.on_kill_action,
        propagation_policy: Propagation = EndOptions.propagation_policy,
        termination_grace_period: timedelta | int | None = None,
        skip_on_exit_code: int | Collection[int] | None = None,
        callbacks: type[MXNetJobCallback] | Sequence[type[MXNetJobCallback]] = (),
        result_from: Literal["termination_message"] | None = "termination_message",
        lease: timedelta | float | None = DEFAULT_LEASE,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.kubernetes_conn_id = kubernetes_conn_id
        self.in_cluster = in_cluster
        self.config_file = config_file
        self.cluster_context = cluster_context
        self.wait_for_completion = wait_for_completion
        self.deferrable = (
            conf.getboolean("operators", "default_deferrable", fallback=False) if deferrable is None else deferrable
        )
        self.skip_on_exit_code = exit_codes(skip_on_exit_code)
        self.durable = durable
        self.reuse_succeeded_on_retry = reuse_succeeded_on_retry
        require_result_from(result_from)
        self.result_from = result_from
        self.lease = in_seconds("lease", lease)
        self.poll_interval = in_seconds("poll_interval", poll_interval)
        self.startup_timeout = limit_in_seconds("startup_timeout", startup_timeout)
        self.api_outage_tolerance = in_seconds("api_outage_tolerance", api_outage_tolerance)
        self.get_logs = get_logs
        self.log_replicas = self.default_log_replicas if log_replicas is None else log_replicas
        self.log_tail_on_failure = log_tail_on_failure
        self.log_events_on_failure = log_events_on_failure
        self.on_finish_action = on_finish_action
        self.on_kill_action = on_kill_action
        self.propagation_policy = propagation_policy
        self.termination_grace_period = whole_seconds("termination_grace_period", termination_grace_period)
        self.callbacks = callbacks_of(callbacks)
        _ = self._wait_options, self._log_options, self._end_options  # mistakes are raised where the DAG is parsed
        self._job: TaskJob | None = None
        self._killed = False
        self._cursors: dict[str, list[Any]] = {}
        self._deferred_at: float | None = None
        self._metrics: Metrics | None = None

    @property
    def job_ref(self) -> "JobRef | None":
        """The job of this try, once it is known: what the links lead to."""
        return None if self._job is None else self._job.known

    @property
    def job_page(self) -> str:
        """The address of its page that the job's status gives; empty where it gives none."""
        return "" if self._job is None else self._job.page

    def execute(self, context: "Context") -> dict[str, Any]:
        """Create the job, or find the one of an earlier try, wait for it, and return what it came to.

        Raises:
            MXNetManifestError: the manifest has mistakes, or the API server rejects the job for good.
            MXNetPermissionError: the API server rejects it for want of a right, which it names.
            MXNetJobFailedError: the job failed; the message is that of its Failed condition.
            AirflowSkipException: it did with one of `skip_on_exit_code`.
            MXNetJobDeletedError: the job was deleted, or replaced, before it had finished.
            MXNetJobNameTakenError: the job's name belongs to something else.
            MXNetJobStartupTimeoutError: the job's pods did not run in time.
            MXNetJobUnreachableError: the API server was away for too long; the job may be running.
        """
        with self._one_try(context) as ours:
            timeout = self.execution_timeout
            deadline = None if timeout is None else time.time() + timeout.total_seconds()
            job = ours.begin(
                lambda token: self._with_objects_applied(self.manifest_to_create(context, token)),
                deadline,
                namespace=self._given_namespace,
                reuse_succeeded=self.reuse_succeeded_on_retry,
            )
            if job is None:
                self.log.info("%s has succeeded in an earlier try; that is the result.", ours.title)
                return self._return(context, ours.outcome)
            self._call_back("on_job_creation", context, job=job)
            if self.deferrable or not self.wait_for_completion:
                ours.await_page(job)
            if not self.wait_for_completion:
                begun: dict[str, Any] = storable(summary(job, [], result_of=None))
                return begun
            if job_state(job) not in TERMINAL and self.deferrable:
                self._defer(ours, deadline)
            try:
                ended = self._wait(ours)
            except AirflowTaskTimeout:
                now = time.time()
                if not ours.success_is_known():
                    raise
                self.log.info("execution_timeout is over, but %s has as good as succeeded.", ours.title)
                ended = self._wait(ours, deadline=now)
            return self._complete(context, ours, ended)

    def execute_complete(self, context: "Context", event: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Go on where the trigger ended; the arguments are Airflow's."""
        with self._one_try(context) as ours:
            ours.recall()
            received, ref = events.read(event), ours.ref
            self._call_back("on_operator_resuming", context, event=received.payload())
            if (received.name, received.namespace, received.uid) != (ref.name, ref.namespace, ref.uid):
                raise MXNetJobError(f"The trigger sent an event about another job: {received!r}")
            if received.status in ("error", "refused"):
                self._cursors = received.log_cursors
                self.log.warning("The trigger gave up on the API server: %s", received.message)
                return self._check_again(context, ours)
            return self._complete(context, ours, received)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: "Context"
    ) -> dict[str, Any]:
        """Resume as every operator does, but check a trigger that failed or ran out of time instead of believing it."""
        try:
            result: dict[str, Any] = super().resume_execution(next_method, next_kwargs, context)
            return result
        except airflow_versions.DEFERRAL_ERRORS as e:
            failure = e
        with self._one_try(context) as ours:
            ours.recall()
            self.log.warning("The trigger ended without an event: %s", failure)
            self._deferred_at = 0.0  # how far the log was shown is lost: go on from now
            return self._check_again(context, ours, out_of_time=airflow_versions.is_deferral_timeout(failure))

    def on_kill(self) -> None:
        """Delete, suspend or keep the unfinished job of this try, if it was a user who ended its task."""
        self._killed = True
        if self._job is not None:
            self._job.worker_ends()

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
        for callback in callbacks_of(self.callbacks):  # one that fails here fails the task: there is no job yet
            callback.on_manifest_created(manifest=manifest, operator=self, context=context)
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
            except Exception as e:
                if (answer := api_errors.refusal(e)) is None:
                    raise
                raise failure(answer, f"{title}, which the manifest has beside the job") from e
            self.log.info("%s %s.", "Created" if is_new else "Found, and patched by the manifest,", title)
        return manifest

    def _final_manifest(self, labels: Mapping[str, str], token: str) -> dict[str, Any]:
        manifest = self.given_manifest()
        metadata = manifests.metadata_of(manifest)
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

    def _lease(self, context: "Context") -> Lease | None:
        wanted, action = self._end_options.lease, self._end_options.on_kill_action
        if wanted is None or action == "keep" or not self.wait_for_completion:
            return None
        seconds = lease_seconds(wanted, self._wait_options.poll_interval, self._delay_before_retry(context))
        return Lease(seconds, action)

    def _delay_before_retry(self, context: "Context") -> float:
        given = self.max_retry_delay
        longest = timedelta(seconds=given) if isinstance(given, int | float) else given
        return delay_before_retry(
            context["ti"].try_number,
            context["ti"].max_tries,
            self.retry_delay,
            factor=self.retry_exponential_backoff,
            longest=longest,
            instead=airflow_versions.delays_by_policy(self),
        )

    # What the attributes say: a cluster policy may have changed them since the DAG's author set them

    @property
    def _wait_options(self) -> WaitOptions:
        return WaitOptions(
            poll_interval=self.poll_interval,
            startup_timeout=self.startup_timeout,
            api_outage_tolerance=self.api_outage_tolerance,
        )

    @property
    def _log_options(self) -> LogOptions:
        return LogOptions(
            get_logs=self.get_logs,
            log_replicas=self.default_log_replicas if self.log_replicas is None else self.log_replicas,
            log_tail_on_failure=self.log_tail_on_failure,
            log_events_on_failure=self.log_events_on_failure,
        )

    @property
    def _end_options(self) -> EndOptions:
        return EndOptions(
            on_finish_action=self.on_finish_action,
            on_kill_action=self.on_kill_action,
            propagation_policy=self.propagation_policy,
            termination_grace_period=self.termination_grace_period,
            lease=self.lease,
        )

    # How a try waits

    @contextlib.contextmanager
    def _one_try(self, context: "Context") -> Iterator[TaskJob]:
        """Hold the job of this try while this process has it; a rejection fails the task in the server's words."""
        self._job = ours = TaskJob(
            context,
            self.hook,
            log=self.log,
            plural=self.plural,
            durable=self.durable,
            ends=self._end_options,
            waits=self.wait_for_completion,
            lease=self._lease(context),
            retries=self.retries or 0,
        )
        if self._killed:
            ours.worker_ends()
        try:
            yield ours
        except KeyboardInterrupt:  # `airflow dags test` calls no on_kill
            ours.kill("its task was interrupted")
            raise
        except AirflowTaskTimeout:
            ours.kill(_OUT_OF_TIME)
            raise
        except airflow_versions.REFUSALS:
            ours.worker_ends()  # a user may have cleared the task, and no heartbeat of this try will say so any more
            raise
        except Exception as e:
            if (answer := api_errors.refusal(e)) is None:
                raise
            raise failure(answer, ours.title) from e
        else:
            ours.is_let_go = True

    def _wait(self, ours: TaskJob, deadline: float | None = None, *, get_logs: bool = True) -> Event:
        """Wait in this process; Airflow itself keeps the `execution_timeout`, once."""
        from mxnet_provider.replica_logs import ReplicaLogs  # noqa: PLC0415 - not where a DAG is parsed
        from mxnet_provider.watch import JobWatch, StoppedError, run_in_thread  # noqa: PLC0415

        chosen = self._log_options.log_replicas if get_logs and self._log_options.get_logs else ()
        self._metrics = metrics = self._metrics or Metrics(self._stats_tags, self.log.warning)

        async def watch() -> Event:
            async with self.hook.job_client() as client:
                logs = ReplicaLogs(client, ours.ref, chosen, self.log, metrics, follows=True, cursors=self._cursors)
                try:
                    return await JobWatch(
                        client,
                        ours.ref,
                        self._wait_options,
                        logs,
                        self.log,
                        renewer=ours.renewer,
                        lease=None if ours.lease is None else ours.lease.seconds,
                        deadline=deadline,
                        reattached_at=ours.reattached_at,
                        result_of=self._result_of,
                        observe=ours.observe,
                    ).run_or_raise()
                finally:
                    self._cursors = logs.cursors()

        try:
            return run_in_thread(watch(), ours.killed)
        except StoppedError as e:
            raise MXNetJobError(f"{ours.title} is no longer waited for, because the task was killed.") from e

    def _defer(self, ours: TaskJob, deadline: float | None) -> NoReturn:
        from mxnet_provider.triggers.mxnet_job import MXNetJobTrigger  # noqa: PLC0415 - not where a DAG is parsed

        waiting, logs, ends = self._wait_options, self._log_options, self._end_options
        now = time.time()
        limit = None
        if deadline is not None:  # the scheduler's, should the trigger itself be stuck
            limit = timedelta(seconds=max(deadline - now, 0) + max(60.0, 2 * waiting.poll_interval))
        trigger = MXNetJobTrigger(
            **msgspec.structs.asdict(ours.ref),
            **asdict(waiting),
            **self.connection.arguments(),
            deadline=deadline,
            get_logs=logs.get_logs,
            log_replicas=list(logs.log_replicas),
            log_cursors=self._cursors,
            result_of=self._result_of,
            on_kill_action=ends.on_kill_action,
            propagation_policy=ends.propagation_policy,
            stats_tags=self._stats_tags,
            deferred_at=now if self._deferred_at is None else self._deferred_at,
            holder=ours.token,
            lease=None if ours.lease is None else ours.lease.seconds,
            reattached_at=ours.reattached_at,
        )
        ours.hand_over()
        self.defer(trigger=trigger, method_name="execute_complete", timeout=limit)

    def _check_again(self, context: "Context", ours: TaskJob, *, out_of_time: bool = False) -> dict[str, Any]:
        """Read the job here after a trigger that ended without an event, and defer again if it just runs."""
        ref = ours.ref
        try:
            job = self.hook.get_job(ref)
        except Exception as e:
            if not api_errors.is_transient(e):
                raise
            raise MXNetJobUnreachableError(
                f"The API server can't be reached, and {ref.title} may be running; another try will look for it: {e}"
            ) from e
        now, deadline = time.time(), ours.deadline
        if out_of_time:
            deadline = min(deadline or now, now)
        found = completion_of(job, ref.uid, now=now, deadline=deadline)
        if found is not None:
            return self._complete(context, ours, self._wait(ours, deadline, get_logs=False))
        ours.redefer()
        return self._defer(ours, ours.deadline)

    # How the waiting ends

    def _complete(self, context: "Context", ours: TaskJob, ended: Event) -> dict[str, Any]:
        """Conclude from the end of the waiting, for the job and for the task; every way of waiting comes here."""
        ref = ours.ref
        ours.note_page(ended.page)
        concluded = conclude(ended, ref.title, skip_on_exit_code=self.skip_on_exit_code)
        self._call_back("on_job_completion", context, event=ended.payload())
        if concluded.error is None:
            returned = self._return(context, ended)
            ours.finished(ended)
            return returned
        self._push_metrics(context, ended)
        if concluded.shows_logs and self._log_options.get_logs:
            show_failed(self.hook, ref, self.log, self._log_options.log_tail_on_failure, but=ended.logs_shown)
        if concluded.shows_events and self._log_options.log_events_on_failure:
            show_events(self.hook, ref, self.log)
        if concluded.ends_job:
            ours.kill(_OUT_OF_TIME if ended.status == "timeout" else "it did not start within startup_timeout")
        ours.finished(ended)
        raise concluded.error

    def _return(self, context: "Context", ended: Event) -> dict[str, Any]:
        if ended.summary is None or ended.summary["state"] != SUCCEEDED:
            raise MXNetJobError(f"{ended.name} was reported as succeeded, without its state: {ended!r}")
        self._push_metrics(context, ended)
        files = ended.summary.get("files")  # not in an event of an earlier release
        if files is not None:
            self.log.info("Files: %s.", ", ".join(files) or NOTHING_KEPT)
        returned: dict[str, Any] = storable(ended.summary)
        for outlet in self.outlets or ():  # who looks at an asset's event wants to know which job it is of
            about = {name: returned.get(name) for name in _OF_AN_ASSET}
            context["outlet_events"][outlet].extra.update(about)
        return returned

    def _call_back(self, name: str, context: "Context", **what: Any) -> None:
        """Call one function of each callback. A mistake in it is logged: the job goes on, and so does its task."""
        for callback in callbacks_of(self.callbacks):
            try:
                getattr(callback, name)(**what, operator=self, context=context)
            except Exception:
                self.log.exception("%s.%s failed; the task goes on", callback.__name__, name)

    def _push_metrics(self, context: "Context", ended: Event) -> None:
        if ended.metrics:
            context["ti"].xcom_push(key="metrics", value=storable(ended.metrics))

    @property
    def _result_of(self) -> str | None:
        return None if self.result_from is None else self.result_of

    @property
    def _stats_tags(self) -> dict[str, str]:
        return {"dag_id": self.dag_id, "task_id": self.task_id}
