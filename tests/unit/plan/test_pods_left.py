"""Whether pods of a job are still to go, which the last phase of older API versions waits for: `plan` says so."""

import pytest
from builders import NOW, make_mxjob, make_pod, observe, plan


@pytest.mark.parametrize(
    ("policy", "pod", "left"),
    [
        ("Running", "running", True),  # what follows the end of the job deletes it
        ("None", "running", True),  # ... or stops it
        ("None", "succeeded", False),
        ("All", "succeeded", True),
        ("None", "deleting", True),
    ],
)
@pytest.mark.parametrize("over", [True, False], ids=["over", "by this plan"])
def test_pods_are_left_until_the_clean_up_has_had_its_way(policy: str, pod: str, left: bool, over: bool) -> None:
    builder = make_mxjob().scheduler().worker(2).run_policy(cleanPodPolicy=policy).condition("Running")
    job = (builder.condition("Failed") if over else builder).obj()
    failed = make_pod(job, "Worker").failed(1)
    other = make_pod(job, "Worker", 1)
    {"running": other.running, "succeeded": other.succeeded, "deleting": other.running}[pod]()
    if pod == "deleting":
        other.deleting()
    scheduler = make_pod(job, "Scheduler").succeeded()
    decided = plan(job, observe(job, scheduler, failed, other), NOW)
    assert decided.pods_left is left
