"""Jobs that wait, one for each condition that says so: every command and the provider must show what it says."""

from typing import Any

from builders import make_mxjob

from mxnet_operator.readers.waiting import WAITING

WORDS = "the very words of"


def waiting_job(condition_type: str) -> dict[str, Any]:
    """A job that has nothing but Created and this condition, in the status in which it tells of a wait."""
    job = make_mxjob().gang().manifest()
    told = {"type": condition_type, "status": WAITING[condition_type], "reason": "R"}
    said = {"type": "Created", "status": "True", "message": "MXJob digits is created."}
    job["metadata"] |= {"namespace": "default", "uid": "u", "resourceVersion": "1"}
    job["status"] = {"conditions": [said, told | {"message": f"{WORDS} {condition_type}\nand a log line"}]}
    return job
