"""Reference to a job, as it is carried through deferral, stored state and XComs."""

from typing import Any

from mxnet_operator.client.job_client import JobRef


def is_given(name: Any) -> bool:
    """Whether a name or uid says something: a template that found nothing renders as "None"."""
    return name not in (None, "", "None")


__all__ = ["JobRef", "is_given"]
