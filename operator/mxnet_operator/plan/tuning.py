"""Tuning without servers: TVM's tuner asks the tracker for one without end when none can measure."""

from mxnet_operator.api import names
from mxnet_operator.plan.replicas import Outcome, Replica, is_tuning, of_types


def without_servers(replicas: tuple[Replica, ...]) -> str:
    """Return the message that a tuner waits in vain, with the TunerServers that don't run; else empty."""
    servers = of_types(replicas, names.TUNER_SERVER)
    if not is_tuning(replicas) or any(server.outcome is Outcome.RUNNING for server in servers):
        return ""
    text = "no TunerServer was running, and a tuner waits for one without end"
    if not servers:
        return f"{text} (the job asks for none)"
    reasons = (server.pod.waiting_reason for server in servers if server.pod and server.pod.waiting_reason)
    first, reason = servers[0], next(reasons, "")
    return f"{text} ({first.label}: {reason or first.outcome.value})"
