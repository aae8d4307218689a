"""Retries of a job's poller: how often Argo starts a new one, and after which ends of the last one it doesn't."""

from typing import Final

from hera.workflows import RetryStrategy
from hera.workflows.models import Backoff
from hera.workflows.models.io.k8s.apimachinery.pkg.util.intstr import IntOrString

_FOR_EVER: Final = "87600h"
"""Ten years: in seconds it still is an `activeDeadlineSeconds` that Kubernetes accepts."""


def refuse_retry_strategy(template: str, given: object) -> None:
    """Reject a strategy of the user's: another attempt at a step finds the same job, and trains nothing.

    Raises:
        ValueError: with what tries a training again.
    """
    if given is not None:
        raise ValueError(
            f"{template}: leave retry_strategy out: another attempt would find the same failed job. To train again"
            " after failures is the job's: backoffLimit and restartPolicy; what Argo retries here is who waits for it."
            " A built step has one: build another, by a function of what differs, in place of dataclasses.replace()"
        )


def retry_unless(final: str, *, limit: int = 10, first: str = "5s", cap: str = "10m") -> RetryStrategy:
    """Retry a poller, unless this Argo expression says that another attempt would end the same way.

    Every field is set, since Argo merges those of an organisation's `templateDefaults` into what a template leaves out.
    `maxDuration` would end the new poller that long after the first one began, however long the job takes.
    """
    return RetryStrategy(
        limit=limit,
        retry_policy="Always",
        backoff=Backoff(duration=first, factor=IntOrString(root=2), cap=cap, max_duration=_FOR_EVER),
        expression=f"not ({final})",
    )
