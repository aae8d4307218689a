"""A pod whose labels were changed: it stays its job's, and gets its labels back.

Without the label that it is watched by, a pod would seem to be gone: its gang would be torn down though it is sound,
and the next attempt be made beside it. `docs/decisions/0032-changed-labels-are-put-back.md`.
"""

from datetime import timedelta
from typing import Final

from mxnet_operator.plan.actions import Event, RestoreLabels
from mxnet_operator.plan.observed import PodView

_LOOK_AGAIN: Final = timedelta(seconds=5)


def restored(pods: tuple[PodView, ...]) -> tuple[RestoreLabels, ...]:
    """The labels to put back; those of a pod that is going no longer matter."""
    return tuple(RestoreLabels(pod.name, pod.uid, pod.type, pod.index, pod.attempt) for pod in _changed(pods))


def told(pods: tuple[PodView, ...]) -> tuple[Event, ...]:
    """What the user hears of it."""
    return tuple(
        Event(
            "Warning",
            "PodLabelsRestored",
            f"The labels of pod {pod.name} were changed, by which its job's controller and Services find it: they are "
            "put back. To take the pod away, delete it.",
        )
        for pod in _changed(pods)
    )


def unwatched_in(pods: tuple[PodView, ...]) -> timedelta | None:
    """When to look again at pods of which no event may tell; None where there are none."""
    return _LOOK_AGAIN if any(pod.mislabelled for pod in pods) else None


def _changed(pods: tuple[PodView, ...]) -> tuple[PodView, ...]:
    return tuple(pod for pod in pods if pod.mislabelled and not pod.deleting)
