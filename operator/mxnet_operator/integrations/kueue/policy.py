"""A job that names a queue of Kueue's runs only while that has admitted it.

It waits as a suspended job does: without pods, and its spec is never written. What stands for it in the queue is a
Workload that it owns. Its quota is given back once no pod is left: when it is evicted, suspended by its user, or over.
The reasons are in `docs/decisions/gangs.md`.
"""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec

from mxnet_operator.api import conditions
from mxnet_operator.api.pod_additions import PodAdditions, Toleration, pairs
from mxnet_operator.api.queue_labels import (
    QUEUE_LABEL,
    QUEUE_PRIORITY_LABEL,
    QUEUE_TIME_LABEL,
    execution_seconds_problem,
    queue_of,
)
from mxnet_operator.api.status_size import is_same_message, shortened
from mxnet_operator.api.types import MXJob
from mxnet_operator.integrations.kueue.workload import (
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    ChangeQueueWorkload,
    CreateQueueWorkload,
    DeleteQueueWorkload,
    QueuePriority,
    QueueState,
    QueueWorkload,
    ResourceFlavor,
    finished,
    pods_ready,
    quota_returned,
)
from mxnet_operator.plan.actions import Action, CreatePod, Effects, Event, Report
from mxnet_operator.plan.integration import IntegrationPolicy
from mxnet_operator.plan.observed import Observed
from mxnet_operator.plan.replicas import is_begun, replicas_in
from mxnet_operator.plan.started import effective_job, with_all_replicas
from mxnet_operator.plan.state import Admission, AdmissionState, JobState
from mxnet_operator.plan.times import time_until_said_again
from mxnet_operator.readers.pods import ENDED

ASK_AGAIN: Final = timedelta(seconds=15)
"""How often a priority class or flavor is asked for that can't be read: nothing watches them."""
_WAIT_FOR_KUEUE: Final = timedelta(seconds=1)
"""How soon a job is reconciled again where it is not known yet what Kueue, or a class, says."""
SAY_AGAIN: Final = timedelta(seconds=3)
"""Minimum time between two updates of a waiting job's message, which changes with all that happens in its queue."""
_KUEUE_ABSENT: Final = "KueueNotInstalled"
_KUEUE_UNREADABLE: Final = "KueueUnreadable"
_PRIORITY_CLASS: Final = "PriorityClassUnreadable"
_FLAVOR: Final = "ResourceFlavorUnreadable"
_QUEUED: Final = "Queued"
_ADMITTED: Final = "Admitted"
_EVICTED: Final = "Evicted"
_DEACTIVATED: Final = "Deactivated"
_CHECKS_PENDING: Final = "AdmissionChecksPending"
_WARNED: Final = frozenset(
    {
        _KUEUE_ABSENT,
        _KUEUE_UNREADABLE,
        _PRIORITY_CLASS,
        _FLAVOR,
        _EVICTED,
        _DEACTIVATED,
        "Inadmissible",
    }
)
_SIZED_BY: Final = ("affinity", "nodeSelector", "overhead", "priorityClassName", "resources", "runtimeClassName")
"""Fields of a pod's spec, besides containers and tolerations, that say where it fits and what it takes."""
_NAMED_CHECKS: Final = 5
_POD_GROUP_LABEL: Final = "kueue.x-k8s.io/pod-group-name"
"""Label of a pod that Kueue counts by itself, with those of the same group."""
_POD_SET_LABEL: Final = "kueue.x-k8s.io/podset"
_WORKLOAD_ANNOTATION: Final = "kueue.x-k8s.io/workload"
_TOPOLOGY_GATE: Final = "kueue.x-k8s.io/topology"
"""Scheduling gate, label and annotation of the pods of a Workload under Kueue's topology-aware scheduling."""


class QueueAdmission(Admission, frozen=True, kw_only=True):
    """Admission of a job by its queue: the job's state, the condition Admitted, and what is to be done."""

    status: bool = False
    """Of the condition Admitted."""
    reason: str = ""
    """Of the condition Admitted; empty for a job in no queue, which has none."""
    message: str = ""
    actions: tuple[Action, ...] = ()
    """What is to be done in the queue; those of a job that waits come once its pods have gone."""
    placements: Mapping[str, PodAdditions] = {}
    """What is added to its pods, by type."""


class KueuePolicy(IntegrationPolicy):
    """Decisions about a job that names a queue."""

    def admission(self, job: MXJob, observed: Observed) -> QueueAdmission | None:
        """Return the admission of a job in a queue, or of one that leaves it; None for one in no queue."""
        queue = _queue_state(observed)
        if not queue_of(job) and queue.workload is None:
            return None
        admission = _admission(job, observed, queue)
        if admission.reason:
            admission = msgspec.structs.replace(admission, waits=f"waits in queue {queue_of(job)}")
        problem = execution_seconds_problem(job.metadata.labels or {})
        if not admission.message or not problem:
            return admission
        message = f"{admission.message} The label {QUEUE_TIME_LABEL} has no effect: {problem}."
        return msgspec.structs.replace(admission, message=message)

    def waiting(self, state: JobState, *, has_pods: bool) -> Effects:
        """Say why the job waits; once its pods have gone, do what is to be done in the queue or give quota back."""
        admission = _admission_of(state)
        reported = _reported(state, admission)
        if has_pods:
            return reported
        return reported + Effects(actions=admission.actions or _return_quota(_queue_state(state.observed), state.now))

    def running(self, state: JobState) -> Effects:
        """Say that the job is admitted, and tell Kueue whether all of its pods run."""
        admission = _admission_of(state)
        return _reported(state, admission) + Effects(actions=(*admission.actions, *_report_ready(state)))

    def creations(self, state: JobState, pods: tuple[CreatePod, ...]) -> tuple[CreatePod, ...]:
        """Add the node labels and tolerations of the flavors that the job was admitted with."""
        placements = _admission_of(state).placements
        return tuple(
            msgspec.structs.replace(each, additions=(*each.additions, found))
            if (found := placements.get(each.type))
            else each
            for each in pods
        )

    def finished(self, job: MXJob, observed: Observed, now: datetime) -> tuple[Action, ...]:
        """Give back the quota of a job that is over, once none of its pods runs any more."""
        workload = _queue_state(observed).workload
        runs = any(pod.phase not in ENDED for pod in observed.pods)
        if workload is None or workload.deleting or runs or workload.is_true(FINISHED):
            return ()
        succeeded = conditions.is_true(job.status.conditions, conditions.SUCCEEDED)
        message = next((each.message for each in job.status.conditions if each.type in conditions.TERMINAL), "")
        return (finished(workload, succeeded=succeeded, message=message, now=now),)

    def notices(self, state: JobState) -> Iterator[Event]:
        """Yield the Warning for pods with Kueue's own queue label, of which Kueue would count each by itself.

        A group of fixed names hangs when one of its pods ends.
        """
        for replica_type, spec in state.asked.spec.specs_in_use.items():
            labels = (spec.template.get("metadata") or {}).get("labels") or {}
            found = [label for label in (QUEUE_LABEL, _POD_GROUP_LABEL) if label in labels]
            if found:
                message = (
                    f"{replica_type}: the template has the label {', '.join(found)}: Kueue then admits pod by pod or by"
                    " pod group, which hangs when a gang is preempted, restarted or deleted while it waits. Remove it,"
                    f" and put {QUEUE_LABEL} on the MXJob itself"
                )
                yield Event("Warning", "KueuePodGroup", message)


def _queue_state(observed: Observed) -> QueueState:
    return observed.fact(QueueState) or QueueState()


def _admission_of(state: JobState) -> QueueAdmission:
    return state.admission if isinstance(state.admission, QueueAdmission) else QueueAdmission()


def _admission(job: MXJob, observed: Observed, state: QueueState) -> QueueAdmission:
    queue, workload, kinds = queue_of(job), state.workload, state.kinds
    if job.spec.run_policy.suspend or not queue:
        suspended = AdmissionState.WAITS if job.spec.run_policy.suspend else AdmissionState.RUNS
        return QueueAdmission(state=suspended, actions=_deleted(workload))
    if kinds.state == "Absent":
        message = (
            f"The queue {queue} is ignored and the job runs outside of any quota: the API server has no Workloads of"
            f" Kueue in a version that this controller knows. Install Kueue, or remove the label {QUEUE_LABEL}."
        )
        return QueueAdmission(reason=_KUEUE_ABSENT, message=message)
    if kinds.state == "Unknown":
        message = f"The queue {queue} can't be asked, and the job gets no pods before it can: {kinds.trouble}"
        unread = _without_news(job, observed) if kinds.trouble else AdmissionState.UNKNOWN
        return QueueAdmission(state=unread, reason=_KUEUE_UNREADABLE, message=message, requeue_after=_WAIT_FOR_KUEUE)
    if workload is not None and workload.is_admitted:
        return _admitted(job, observed, workload, state.flavors)
    return _waiting(job, queue, state)


def flavors_wanted(job: MXJob, observed: Observed) -> tuple[str, ...]:
    """Return the flavors that `plan` has to know of before: those of a job, as written, that is to get pods."""
    workload = _queue_state(observed).workload
    if workload is None or not workload.is_admitted or not _lacks_pods(effective_job(job), observed):
        return ()
    return tuple(dict.fromkeys(flavor for each in workload.assignments for flavor in (each.flavors or {}).values()))


def priority_wanted(job: MXJob, observed: Observed) -> QueuePriority | None:
    """Return the class that `plan` has to know of before: that of a job whose Workload is to be written."""
    state = _queue_state(observed)
    is_queued = queue_of(job) and not job.spec.run_policy.suspend and not conditions.is_terminal(job.status)
    if not is_queued or state.kinds.state != "Served":
        return None
    workload = state.workload
    if workload is not None and (workload.has_quota or workload.asks_for == asks_for(effective_job(job))):
        return None
    return _class_of(job)


def _reported(state: JobState, admission: QueueAdmission) -> Effects:
    """Report Admitted as the queue has it, with an Event where that is new; nothing for a job in no queue.

    What a queue reports of a waiting job changes with all that happens in it: it is passed on every few seconds.
    """
    old = state.condition(conditions.ADMITTED)
    if not admission.reason:
        return Effects(reports=() if old is None else (Report(conditions.ADMITTED, status="Absent"),))
    status: Literal["True", "False"] = "True" if admission.status else "False"
    reports = (Report(conditions.ADMITTED, admission.reason, admission.message, status),)
    if old is None or (old.status, old.reason) != (status, admission.reason):
        is_told = admission.status or admission.reason in _WARNED
        event = Event("Normal" if admission.status else "Warning", admission.reason, shortened(admission.message))
        return Effects(reports=reports, events=(event,) if is_told else ())
    if is_same_message(old.message, admission.message):
        return Effects()
    if kept := time_until_said_again(old, state.now, SAY_AGAIN):
        return Effects(requeue_after=kept)
    return Effects(reports=reports)


def _report_ready(state: JobState) -> tuple[Action, ...]:
    """Have an admitted job's Workload say whether all of its pods run."""
    workload = _queue_state(state.observed).workload
    if workload is None or not workload.is_admitted:
        return ()
    has_run = conditions.is_true(state.job.status.conditions, conditions.RUNNING)
    change = pods_ready(workload, state.now, ready=has_run or all(each.started for each in state.replicas))
    return (change,) if change is not None else ()


def asks_for(job: MXJob) -> str:
    """Digest what a job with defaults asks its queue for: not its program, which may change while it waits.

    An attempt with fewer Workers keeps the quota for all, with which the next one begins.
    """
    job = with_all_replicas(job)
    types = {
        replica_type: [spec.replicas or 0, *_sizes(spec.template["spec"])]
        for replica_type, spec in job.spec.specs_in_use.items()
    }
    labels = job.metadata.labels or {}
    asked = [labels.get(each, "") for each in (QUEUE_LABEL, QUEUE_PRIORITY_LABEL, QUEUE_TIME_LABEL)]
    asked.append("" if labels.get(QUEUE_PRIORITY_LABEL) else _scheduling_class(job))
    return hashlib.sha256(msgspec.json.encode([asked, types], order="deterministic")).hexdigest()[:16]


def workload_name(job: MXJob) -> str:
    """Return the name of a job's Workload: of another job of its name, it is another."""
    return f"{job.kind.lower()}-{job.metadata.name}-{job.metadata.uid[:5]}"


def _admitted(
    job: MXJob, observed: Observed, workload: QueueWorkload, known: tuple[ResourceFlavor, ...]
) -> QueueAdmission:
    if not observed.pods and workload.asks_for != asks_for(job):
        message = f"Queue {queue_of(job)}: the job asks for something else than it was admitted for, and queues anew."
        return QueueAdmission(state=AdmissionState.WAITS, reason=_QUEUED, message=message, actions=_deleted(workload))
    used = list(dict.fromkeys(flavor for each in workload.assignments for flavor in (each.flavors or {}).values()))
    message = f"Admitted by ClusterQueue {workload.cluster_queue}"
    message += f" with {'flavors' if len(used) > 1 else 'flavor'} {', '.join(used)}." if used else "."
    if not _lacks_pods(job, observed):
        return QueueAdmission(status=True, reason=_ADMITTED, message=message)
    flavors = {each.name: each for each in known}
    unread = [name for name in used if name not in flavors or flavors[name].problem]
    if unread:
        why = flavors[unread[0]].problem if unread[0] in flavors else "it was not read"
        message = f"The job is admitted and gets no pods before ResourceFlavor {unread[0]} can be read: {why}"
        state = _without_news(job, observed)
        return QueueAdmission(state=state, reason=_FLAVOR, message=message, requeue_after=ASK_AGAIN)
    return QueueAdmission(
        status=True,
        reason=_ADMITTED,
        message=message,
        placements={
            replica_type: found
            for replica_type in job.spec.mx_replica_specs
            if (found := _placement(workload, replica_type.lower(), flavors)) is not None
        },
    )


def _waiting(job: MXJob, queue: str, state: QueueState) -> QueueAdmission:
    workload = state.workload
    if workload is None:
        return _entering(job, queue, state.priority)
    reason, message = _words(queue, workload)
    admission = QueueAdmission(state=AdmissionState.WAITS, reason=reason, message=message)
    if workload.deleting:
        return admission
    if workload.is_true(FINISHED):
        return msgspec.structs.replace(admission, actions=_deleted(workload))
    if workload.asks_for == asks_for(job):
        return admission
    if workload.has_quota:
        return admission if workload.is_evicted else msgspec.structs.replace(admission, actions=_deleted(workload))
    priority, problem = _priority(state.priority)
    if priority is None:
        return problem
    version, digest = workload.resource_version, asks_for(job)
    change = ChangeQueueWorkload(workload.name, workload.uid, version, digest, priority)
    return msgspec.structs.replace(admission, actions=(change,))


def _entering(job: MXJob, queue: str, found: QueuePriority | None) -> QueueAdmission:
    priority, problem = _priority(found)
    if priority is None:
        return problem
    message = f"Queue {queue}: the job has been handed to Kueue."
    create = CreateQueueWorkload(workload_name(job), asks_for(job), priority)
    return QueueAdmission(state=AdmissionState.WAITS, reason=_QUEUED, message=message, actions=(create,))


def _return_quota(state: QueueState, now: datetime) -> tuple[Action, ...]:
    """Give back the quota of a job that was evicted and has no pods any more."""
    workload = state.workload
    if workload is None or not workload.has_quota or not workload.is_evicted or workload.deleting:
        return ()
    return (quota_returned(workload, now),)


def _words(queue: str, workload: QueueWorkload) -> tuple[str, str]:
    """Return why a Workload isn't admitted, in Kueue's words."""
    evicted, reserved = workload.condition(EVICTED), workload.condition(QUOTA_RESERVED)
    if not workload.active:
        why = f": {evicted.message}" if evicted is not None and evicted.message else ""
        message = (
            f"Queue {queue}: Workload {workload.name} is not active{why}. It waits until spec.active of that is true"
            " again, or the job is suspended and resumed."
        )
        return _DEACTIVATED, message
    if workload.has_quota and evicted is not None and evicted.status == "True":
        return _EVICTED, f"Queue {queue}: {evicted.reason}: {evicted.message}"
    if workload.has_quota:
        checks = [each for each in workload.checks if each.state != "Ready"]
        named = "; ".join(": ".join(filter(None, (each.name, each.message))) for each in checks[:_NAMED_CHECKS])
        message = f"Queue {queue}: quota is reserved, and admission checks are pending{f' ({named})' if named else ''}."
        return _CHECKS_PENDING, message
    if reserved is None:
        return _QUEUED, f"Queue {queue}: the job has been handed to Kueue."
    return reserved.reason or _QUEUED, f"Queue {queue}: {reserved.message}"


def _priority(found: QueuePriority | None) -> tuple[QueuePriority | None, QueueAdmission]:
    """Return the class as it was read, or what a job says whose class can't be."""
    if found is not None and not found.problem:
        return found, QueueAdmission()
    if found is None:
        return None, QueueAdmission(state=AdmissionState.UNKNOWN, requeue_after=_WAIT_FOR_KUEUE)
    message = f"The job waits until {found.kind} {found.name or '(the default)'} can be read: {found.problem}"
    return None, QueueAdmission(
        state=AdmissionState.WAITS, reason=_PRIORITY_CLASS, message=message, requeue_after=ASK_AGAIN
    )


def _class_of(job: MXJob) -> QueuePriority:
    """Choose the class as Kueue's integration of Kubeflow's jobs does: the label's, the run policy's, a template's.

    Of several templates it is the first one's, and without any the cluster's default.
    """
    if label := (job.metadata.labels or {}).get(QUEUE_PRIORITY_LABEL):
        return QueuePriority("WorkloadPriorityClass", label)
    of_templates = (spec.template["spec"].get("priorityClassName") for spec in job.spec.specs_in_use.values())
    return QueuePriority("PriorityClass", next(filter(None, (_scheduling_class(job), *of_templates)), ""))


def _scheduling_class(job: MXJob) -> str:
    policy = job.spec.run_policy.scheduling_policy
    return (policy.priority_class if policy is not None else None) or ""


def _placement(workload: QueueWorkload, pod_set: str, flavors: Mapping[str, ResourceFlavor]) -> PodAdditions | None:
    """Return what is added to the pods of one type: Kueue's node labels win, since the quota is for them."""
    found = next((each for each in workload.assignments if each.name == pod_set), None)
    if found is None:
        return None
    used = [flavors[name] for name in dict.fromkeys((found.flavors or {}).values())]
    selector = {key: value for flavor in used for key, value in flavor.node_labels}
    tolerations: list[Toleration] = [each for flavor in used for each in flavor.tolerations]
    labels, annotations = {_POD_SET_LABEL: pod_set}, {_WORKLOAD_ANNOTATION: workload.name}
    for check in workload.checks:
        for update in check.pod_set_updates or ():
            if update.name == pod_set:
                selector |= update.node_selector or {}
                labels |= update.labels or {}
                annotations |= update.annotations or {}
                tolerations += update.tolerations or ()
    return PodAdditions(
        node_selector=pairs(selector),
        tolerations=tuple(dict.fromkeys(tolerations)),
        labels=pairs(labels),
        annotations=pairs(annotations),
        scheduling_gates=(_TOPOLOGY_GATE,) if found.topology_assignment is not None else (),
    )


def _sizes(spec: Mapping[str, Any]) -> Iterator[Any]:
    """Return what of a pod's spec says how much it takes and where it fits."""
    for field in ("initContainers", "containers"):
        yield [[each.get("resources"), each.get("restartPolicy")] for each in spec.get(field) or ()]
    yield spec.get("tolerations") or []
    yield [spec.get(field) or None for field in _SIZED_BY]


def _lacks_pods(job: MXJob, observed: Observed) -> bool:
    own = sum(pod.owner_uid == job.metadata.uid for pod in observed.pods)
    return own < replicas_in(job)


def _without_news(job: MXJob, observed: Observed) -> AdmissionState:
    """Decide for a job of whose queue nothing is known: if it has begun it goes on, else it waits."""
    has_begun = is_begun(job.status) and conditions.state_of(job.status.conditions) != conditions.SUSPENDED
    waits = not has_begun and not observed.pods
    return AdmissionState.WAITS if waits else AdmissionState.HOLDS


def _deleted(workload: QueueWorkload | None) -> tuple[Action, ...]:
    if workload is None or workload.deleting:
        return ()
    return (DeleteQueueWorkload(workload.name, workload.uid, workload.resource_version),)
