"""Diagnosis of a failed job from what the cluster still has: its replicas' last lines and the warnings about it."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from mxnet_operator.client.job_client import JobRef
from mxnet_operator.readers.pods import has_failed, has_log, label_of

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

    from mxnet_provider.hooks.mxnet_job import MXNetJobHook

_MOST_EVENTS: Final = 20
_MOST_PODS: Final = 10


def show_failed(hook: "MXNetJobHook", ref: JobRef, log: "Logger", tail_lines: int, *, but: Collection[str]) -> None:
    """Show the end of the log of each failed replica, but for replicas whose log was shown whole while they ran."""
    if not tail_lines:
        return
    try:
        failed = [pod for pod in hook.replica_pods(ref) if has_failed(pod) and has_log(pod)]
        for pod in [pod for pod in failed if label_of(pod) not in but][:_MOST_PODS]:
            label, metadata = label_of(pod), pod["metadata"]
            for number, line in enumerate(hook.last_lines(metadata["name"], metadata["namespace"], tail_lines)):
                if number == 0:
                    log.info("The last lines of %s:", label)
                log.info("[%s] %s", label, line)
    except Exception as e:
        log.warning("Could not show the logs of the failed replicas: %s", e)


def show_events(hook: "MXNetJobHook", ref: JobRef, log: "Logger") -> None:
    """Show the cluster's warnings about the job and its pods: why there is no place, or no image."""
    try:
        for warning in hook.warnings(ref)[-_MOST_EVENTS:]:
            about = (warning.get("involvedObject") or {}).get("name")
            log.warning("%s: %s: %s", about, warning.get("reason"), warning.get("message"))
    except Exception as e:
        log.warning("Could not show the events of the job: %s", e)
