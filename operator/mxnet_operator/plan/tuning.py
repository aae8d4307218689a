"""What a tuning job waits for when no server can measure: TVM's tuner asks the tracker for one without end."""

from mxnet_operator.api import names
from mxnet_operator.plan.replicas import Outcome, Replica, is_tuning, of_types


def without_servers(replicas: tuple[Replica, ...]) -> str:
    """Of a tuning job of which no TunerServer runs: that its tuner waited in vain, and for whom; else empty."""
    servers = of_types(replicas, names.TUNER_SERVER)
    if not is_tuning(replicas) or any(server.outcome is Outcome.RUNNING for server in servers):
        return ""
    text = "no TunerServer was running, and a tuner waits for one without end"
    if not servers:
        return f"{text} (the job asks for none)"
    reasons = (server.pod.waiting_reason for server in servers if server.pod and server.pod.waiting_reason)
    first, reason = servers[0], next(reasons, "")
    return f"{text} ({first.label}: {reason or first.outcome.value})"
