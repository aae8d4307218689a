"""Condition PodsStarted: which pods of a job can't start, and why; and ExitCodeUnknown, of pods that only have a phase.

A pod can't start in the kubelet's words, or since the kubelet has none.
"""

from datetime import datetime, timedelta
from typing import Final

from mxnet_operator.api import conditions
from mxnet_operator.plan.actions import Effects, Report
from mxnet_operator.plan.observed import PodView
from mxnet_operator.plan.replicas import Replica, labels
from mxnet_operator.plan.state import JobState
from mxnet_operator.plan.times import left_of
from mxnet_operator.readers.pods import ENDED

CANNOT_START: Final = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "PostStartHookError",
        "PreCreateHookError",
        "PreStartHookError",
        "RegistryUnavailable",
        "RunContainerError",
    }
)
"""Kubelet's reasons for trying again later (container/sync_result.go, images/types.go, kuberuntime/)."""
_IS_IT_THERE: Final = ". Does it exist, and is it ready?"
SILENT_AFTER: Final = timedelta(minutes=1)
"""Time after which a placed pod is reported of which its kubelet says nothing, not even that it prepares it."""


def starting(state: JobState) -> Effects:
    """Report PodsStarted: False while containers can't start, True again once every replica runs.

    A kubelet that tries again alternates between two reasons; the message stays until other replicas wait, and then for
    `times.SAY_AGAIN`, since the pods of a large job come to it one after the other. That a node is silent is taken back
    once it reports.
    """
    replicas, now, silent = state.replicas, state.now, conditions.REASON_KUBELET_NOT_REPORTING
    unheard_of = (each.pod.placed_at for each in replicas if each.pod is not None and _is_unheard_of(each.pod))
    waits = (left_of(SILENT_AFTER, placed, now) for placed in unheard_of)
    effects = Effects(requeue_after=min(filter(None, waits), default=None))
    old = state.condition(conditions.PODS_STARTED)
    if found := _cannot_start(replicas, now):
        alike = old is not None and (old.reason == silent) == (found[0] == silent)
        return effects + state.waits(conditions.PODS_STARTED, *found, alike=alike)
    if old is None or old.status != "False":
        return effects
    if all(replica.started for replica in replicas):
        started = Report(conditions.PODS_STARTED, conditions.PODS_STARTED, "Every replica has started.")
        return effects + Effects(reports=(started,))
    return effects + Effects(
        reports=(Report(conditions.PODS_STARTED, status="Absent"),) if old.reason == silent else ()
    )


def reason_to_wait(pod: PodView) -> str:
    """Return why a container of the pod waits, and which; of a placed pod without a status, that its node is silent."""
    if _is_unheard_of(pod):
        return f"node {pod.node_name} has not reported on it"
    words = ": ".join(part for part in (pod.waiting_reason, pod.waiting_message) if part)
    return f"container {pod.waiting_container}: {words}" if pod.waiting_container else words


def unknown_ends(state: JobState) -> Effects:
    """Report ExitCodeUnknown: True while pods have ended without a container status (virtual kubelets).

    Their phase decides. A pod with a reason of its own (Evicted, OutOfcpu) or one that was taken away needs no exit
    code.
    """
    unknown = tuple(replica for replica in state.replicas if _is_unknown(replica))
    if not unknown:
        return state.no_longer(conditions.EXIT_CODE_UNKNOWN, conditions.EXIT_CODE_UNKNOWN, "Every exit code is known.")
    phases = " or ".join(sorted({replica.pod.phase for replica in unknown if replica.pod is not None}))
    message = (
        f"The exit code of {labels(unknown)} is unknown, since its pod has phase {phases} and no status of the"
        " container mxnet: the phase decides."
    )
    return state.warn(conditions.EXIT_CODE_UNKNOWN, conditions.REASON_NO_CONTAINER_STATUS, message)


def _cannot_start(replicas: tuple[Replica, ...], now: datetime) -> tuple[str, str, str] | None:
    """Return what to report: reason, the part that counts, and the rest; None where nothing is wrong."""
    waiting = [(replica, replica.pod) for replica in replicas if replica.pod is not None and not replica.started]
    stuck = [each for each in waiting if each[1].waiting_reason in CANNOT_START]
    silent = [each for each in waiting if _is_unheard_of(each[1]) and not left_of(SILENT_AFTER, each[1].placed_at, now)]
    if not stuck and not silent:
        return None
    who = f"{labels([replica for replica, _ in stuck or silent])} can't start: "
    first = (stuck or silent)[0][1]
    if stuck:
        return first.waiting_reason, who, reason_to_wait(first)
    return conditions.REASON_KUBELET_NOT_REPORTING, f"{who}{reason_to_wait(first)}{_IS_IT_THERE}", ""


def _is_unheard_of(pod: PodView) -> bool:
    """Return whether the kubelet of the pod's node, if there is one, has not reported on it."""
    was_heard_of = pod.reported or pod.waiting_reason or pod.phase != "Pending" or pod.exit_code is not None
    return bool(pod.node_name) and pod.placed_at is not None and not was_heard_of and not pod.deleting


def _is_unknown(replica: Replica) -> bool:
    pod = replica.pod
    if pod is None or pod.exit_code is not None or pod.phase not in ENDED:
        return False
    return not (pod.pod_reason or pod.was_removed)
