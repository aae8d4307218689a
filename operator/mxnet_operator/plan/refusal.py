"""What a job says when it, or what it is made of, is refused.

A stored job that is no valid MXJob (it is older than the CRD's rules) has Failed. One whose pod or Service the API
server refuses (a quota, a bad template, a name that is taken) goes on trying, and says so meanwhile.
"""

from datetime import datetime

import msgspec

from mxnet_operator.api import conditions, names
from mxnet_operator.api.types import MXJobStatus
from mxnet_operator.plan.actions import Event, Plan


def refuse(name: str, status: MXJobStatus, errors: tuple[str, ...], now: datetime) -> Plan:
    """The plan for a job that can't be run; nothing for one that is over already."""
    if conditions.is_terminal(status):
        return Plan()
    message = f"{names.KIND} {name} is not valid: {'; '.join(errors)}"
    current = conditions.set_condition(
        status.conditions, conditions.FAILED, conditions.REASON_FAILED_VALIDATION, message, now
    )
    failed = msgspec.structs.replace(
        status, state=conditions.state_of(current), conditions=current, completion_time=now
    )
    return Plan(status=failed, events=(Event("Warning", conditions.REASON_FAILED_VALIDATION, message),))


def creation_refused(status: MXJobStatus, refusal: Event, now: datetime) -> MXJobStatus:
    """The status of a job one of whose children could not be created, for the reason that the event gives."""
    current = conditions.set_condition(
        status.conditions, conditions.REPLICA_FAILURE, conditions.REASON_FAILED_CREATE, refusal.message, now
    )
    return msgspec.structs.replace(status, conditions=current, state=conditions.state_of(current))
