"""Changed labels: a pod whose labels were edited, or that an older operator made, belongs to its job and gets them.

Without the label that it is watched by, a pod would seem to be gone: its gang would be torn down though it is sound,
and the next attempt be made beside it. `docs/decisions/0032-changed-labels-are-put-back.md`.
"""

from datetime import timedelta
from typing import Final

from mxnet_operator.plan.actions import Event, RestoreLabels
from mxnet_operator.plan.observed import PodView

_CHECK_INTERVAL: Final = timedelta(seconds=5)


def restored(pods: tuple[PodView, ...]) -> tuple[RestoreLabels, ...]:
    """Return the patches that restore labels; those of a terminating pod no longer matter."""
    return tuple(RestoreLabels(pod.name, pod.uid, pod.type, pod.index, pod.attempt) for pod in _changed(pods))


def label_events(pods: tuple[PodView, ...]) -> tuple[Event, ...]:
    """Return the Events about changed labels."""
    return tuple(
        Event(
            "Warning",
            "PodLabelsRestored",
            f"Pod {pod.name} lacked labels by which its job's controller and Services select it; they have been set. To"
            " remove the pod, delete it.",
        )
        for pod in _changed(pods)
    )


def unwatched_in(pods: tuple[PodView, ...]) -> timedelta | None:
    """Return when to requeue a job with pods of which no watch event may arrive; None where there are none."""
    return _CHECK_INTERVAL if any(pod.mislabelled for pod in pods) else None


def _changed(pods: tuple[PodView, ...]) -> tuple[PodView, ...]:
    return tuple(pod for pod in pods if pod.mislabelled and not pod.deleting)
