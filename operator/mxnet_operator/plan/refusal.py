"""What becomes of a stored job that is no valid MXJob (it is older than the CRD's rules): Failed, and why."""

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
