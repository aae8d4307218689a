"""How often Argo starts a new poller for a job, and after which ends of the last one it doesn't."""

from hera.workflows import RetryStrategy
from hera.workflows.models import Backoff
from hera.workflows.models.io.k8s.apimachinery.pkg.util.intstr import IntOrString


def retry_unless(final: str) -> RetryStrategy:
    """Ten more attempts, unless this Argo expression says that another would end the same way.

    No maxDuration: it would end the new poller that long after the first one began, however long the job takes.
    """
    return RetryStrategy(
        limit=10,
        backoff=Backoff(duration="5s", factor=IntOrString(root=2), cap="10m"),
        expression=f"not ({final})",
    )


__all__ = ["retry_unless"]
