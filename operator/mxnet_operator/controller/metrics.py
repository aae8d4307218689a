"""Prometheus metrics of the controller: controller-runtime's and training-operator's names where they fit."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mxnet_operator.api import names
from mxnet_operator.api.types import TrainingStatus
from mxnet_operator.controller.controller import Controller
from mxnet_operator.controller.instrumentation import ControllerObserver, JobEvent, Result

CONTROLLER: Final = names.OPERATOR_NAME
FRAMEWORK: Final = "mxnet"
"""Label of MXJobs in training-operator's metrics."""

# Seconds. controller-runtime's own, less those below a tenth of a millisecond, which no Python code takes.
_QUEUE_BUCKETS: Final = (0.0001, 0.001, 0.01, 0.1, 1, 10, 100, 1000)
_START_BUCKETS: Final = (1, 2, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
_RECONCILE_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_HELP: Final = {
    # controller-runtime's, whose workqueue metrics are client-go's by name
    "controller_runtime_active_workers": "Number of currently used workers per controller",
    "controller_runtime_max_concurrent_reconciles": "Maximum number of concurrent reconciles per controller",
    "controller_runtime_reconcile_errors_total": "Total number of reconciliation errors per controller",
    "controller_runtime_reconcile_panics_total": "Total number of reconciliation panics per controller",
    "controller_runtime_reconcile_time_seconds": "Length of time per reconciliation per controller",
    "controller_runtime_reconcile_total": "Total number of reconciliations per controller",
    "leader_election_master_status": (
        "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
        "'name' is the string used to identify the lease. Please make sure to group by name."
    ),
    "rest_client_requests_total": "Number of HTTP requests, partitioned by status code, method, and host.",
    "workqueue_adds_total": "Total number of adds handled by workqueue",
    "workqueue_depth": "Current depth of workqueue",
    "workqueue_longest_running_processor_seconds": (
        "How many seconds has the longest running processor for workqueue been running."
    ),
    "workqueue_queue_duration_seconds": "How long in seconds an item stays in workqueue before being requested",
    "workqueue_retries_total": "Total number of retries handled by workqueue",
    "workqueue_work_duration_seconds": "How long in seconds processing an item from workqueue takes.",
    # training-operator's
    **{f"training_operator_jobs_{event.value}_total": f"Counts number of jobs {event.value}" for event in JobEvent},
    # this project's
    "mxnet_operator_cache_objects": "Current number of objects in the cache of a resource",
    "mxnet_operator_job_epoch": "Epoch that a training is in, of running jobs with status.training",
    "mxnet_operator_job_estimated_remaining_seconds": "Estimated seconds until a training ends",
    "mxnet_operator_job_metric": "Newest value of a figure of a training, such as validation_accuracy",
    "mxnet_operator_job_progress_percentage": "Percentage of a training's epochs that have ended",
    "mxnet_operator_job_slow_workers": "Number of a training's workers below 70 % of the median speed",
    "mxnet_operator_job_stalled": "Whether a training is stalled: 1 while its workers use no CPU and write nothing",
    "mxnet_operator_job_start_seconds": "Seconds from the acceptance of a job until it ran for the first time",
    "mxnet_operator_jobs": "Current number of jobs by state; New has no status yet",
    "mxnet_operator_task_crashes_total": "Total number of controller tasks restarted after an unexpected exception",
    "mxnet_operator_watch_last_event_seconds": "Seconds since the last event of a watch, bookmarks included",
}
"""HELP of every metric: a name that comes from another project has that project's text."""


class Metrics(ControllerObserver):
    """Metrics of a controller and its client; `render` adds the gauges as they are then."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # Go's clients have none, and each would double the number of series.
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        queue = {"name": CONTROLLER, "controller": CONTROLLER}
        self._adds = self._counter("workqueue_adds_total", queue)
        self._retries = self._counter("workqueue_retries_total", queue)
        self._waited = self._histogram("workqueue_queue_duration_seconds", queue, _QUEUE_BUCKETS)
        self._worked = self._histogram("workqueue_work_duration_seconds", queue, _QUEUE_BUCKETS)
        controller = {"controller": CONTROLLER}
        self._reconcile_time = self._histogram(
            "controller_runtime_reconcile_time_seconds", controller, _RECONCILE_BUCKETS
        )
        reconciles = self._counters("controller_runtime_reconcile_total", *controller, "result")
        self._reconciles = {result: reconciles.labels(CONTROLLER, result.value) for result in Result}
        self._errors = self._counter("controller_runtime_reconcile_errors_total", controller)
        self._panics = self._counter("controller_runtime_reconcile_panics_total", controller)
        self._requests = self._counters("rest_client_requests_total", "code", "method", "host")
        self._starts = self._histograms("mxnet_operator_job_start_seconds", "job_namespace", buckets=_START_BUCKETS)
        self._crashes = self._counters("mxnet_operator_task_crashes_total", "task")
        self._jobs = {
            event: self._counters(f"training_operator_jobs_{event.value}_total", "job_namespace", "framework")
            for event in JobEvent
        }

    def watch(self, controller: Controller) -> None:
        """Include this controller's gauges in every `render`."""
        self.registry.register(_Gauges(controller))

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics in the format that an Accept header asks for, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def requested(self, method: str, host: str, code: str) -> None:
        self._requests.labels(code, method, host).inc()

    def added(self) -> None:
        self._adds.inc()

    def taken(self, waited: float) -> None:
        self._waited.observe(waited)

    def finished(self, worked: float) -> None:
        self._worked.observe(worked)
        self._reconcile_time.observe(worked)

    def retried(self) -> None:
        self._retries.inc()

    def reconciled(self, result: Result) -> None:
        self._reconciles[result].inc()
        if result is Result.ERROR:
            self._errors.inc()

    def panicked(self) -> None:
        self._panics.inc()

    def crashed(self, task: str) -> None:
        self._crashes.labels(task).inc()

    def job(self, namespace: str, event: JobEvent) -> None:
        self._jobs[event].labels(namespace, FRAMEWORK).inc()

    def job_started(self, namespace: str, waited: float) -> None:
        self._starts.labels(namespace).observe(waited)

    def _counters(self, name: str, *labels: str) -> Counter:
        return Counter(name, _HELP[name], labels, registry=self.registry)

    def _counter(self, name: str, labels: dict[str, str]) -> Counter:
        return self._counters(name, *labels).labels(*labels.values())

    def _histogram(self, name: str, labels: dict[str, str], buckets: Iterable[float]) -> Histogram:
        return self._histograms(name, *labels, buckets=buckets).labels(*labels.values())

    def _histograms(self, name: str, *labels: str, buckets: Iterable[float]) -> Histogram:
        return Histogram(name, _HELP[name], labels, buckets=tuple(buckets), registry=self.registry)


class _Gauges(Collector):
    """Collector of gauges that are read from a controller at each scrape."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def collect(self) -> Iterable[Metric]:
        queue = self._controller.queue
        yield _gauge("workqueue_depth", len(queue), name=CONTROLLER, controller=CONTROLLER)
        yield _gauge(
            "workqueue_longest_running_processor_seconds",
            queue.longest_work(),
            name=CONTROLLER,
            controller=CONTROLLER,
        )
        yield _gauge("controller_runtime_active_workers", queue.working, controller=CONTROLLER)
        yield _gauge("controller_runtime_max_concurrent_reconciles", self._controller.workers, controller=CONTROLLER)
        if (elector := self._controller.elector) is not None:
            yield _gauge("leader_election_master_status", elector.leads, name=elector.name)
        jobs = _family("mxnet_operator_jobs", "job_namespace", "state")
        for (namespace, state), number in sorted(self._controller.jobs_by_state().items()):
            jobs.add_metric([namespace, state or "New"], number)
        yield jobs
        yield from _trainings(self._controller.trainings())
        labels = ("resource", "namespace")
        silence = _family("mxnet_operator_watch_last_event_seconds", *labels)
        sizes = _family("mxnet_operator_cache_objects", *labels)
        for reflector in self._controller.reflectors:
            where = [str(reflector.resource), reflector.namespace or ""]
            silence.add_metric(where, reflector.seconds_since_last_event())
            sizes.add_metric(where, len(reflector.cache))
        yield silence
        yield sizes


def _trainings(trainings: Mapping[str, TrainingStatus]) -> Iterator[Metric]:
    """Yield the gauges of the trainings of jobs, by `namespace/name`."""
    job = ("job_namespace", "job_name")
    values = _family("mxnet_operator_job_metric", *job, "metric")
    gauges: dict[str, Callable[[TrainingStatus], int | None]] = {
        "epoch": lambda each: each.epoch,
        "progress_percentage": lambda each: each.progress_percentage,
        "estimated_remaining_seconds": lambda each: each.estimated_remaining_seconds,
        "slow_workers": lambda each: len(each.slow_workers),
        "stalled": lambda each: bool(each.stalled),
    }
    for name, value_of in gauges.items():
        family = _family(f"mxnet_operator_job_{name}", *job)
        for key, training in sorted(trainings.items()):
            if (value := value_of(training)) is not None:
                family.add_metric(key.split("/"), value)
        yield family
    for key, training in sorted(trainings.items()):
        for metric in training.metrics:
            with contextlib.suppress(ValueError):
                values.add_metric([*key.split("/"), metric.name], float(metric.value))
    yield values


def _family(metric: str, /, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric, _HELP[metric], labels=labels)


def _gauge(metric: str, value: float, /, **labels: str) -> GaugeMetricFamily:
    family = _family(metric, *labels)
    family.add_metric(list(labels.values()), float(value))
    return family
