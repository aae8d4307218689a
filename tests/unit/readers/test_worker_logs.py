"""What the logs of all workers show together."""

import pytest
from msgspec import structs

from mxnet_operator.api.types import SlowWorker
from mxnet_operator.readers.worker_logs import slow_text, slow_workers, stall_in, stall_text, stalled_workers

SLEEPS = stall_in("mxjob: stalled for 300 s, without CPU or output, at /a b/train.py:16, in <module>\n")
LOADS = stall_in("mxjob: stalled for 302 s, without CPU or output, at train.py:3, in load")
WAITS = stall_in(
    "mxjob: stalled for 301 s, without CPU or output, at /x/train.py:11, in MXNet's wait_to_read: "
    "do all workers make as many batches?"
)


@pytest.mark.parametrize(
    ("stalls", "text"),
    [
        (
            (WAITS, SLEEPS),
            "5m1s: worker-1 stands at train.py:16, worker-0 waits in MXNet's wait_to_read at train.py:11",
        ),
        ((SLEEPS,), "5m: worker-0 stands at train.py:16"),
        ((LOADS,), "5m2s: worker-0 stands at train.py:3 in load"),
        ((WAITS, WAITS), "5m1s: worker-0, worker-1 wait in MXNet's wait_to_read at train.py:11 (uneven batches?)"),
        (
            (WAITS, ""),
            "5m1s: worker-0 waits in MXNet's wait_to_read at train.py:11, but not worker-1 (uneven batches?)",
        ),
        (
            (SLEEPS, *[WAITS] * 6),
            "5m1s: worker-0 stands at train.py:16, worker-1, worker-2, worker-3, worker-4 and 2 more wait in MXNet's "
            "wait_to_read at train.py:11",
        ),
    ],
)
def test_a_stalled_gang_is_one_sentence_that_begins_with_the_likely_cause(stalls, text):
    assert (
        stall_text(stalled_workers({f"worker-{index}": stall for index, stall in enumerate(stalls)}))
        == f"stalled for {text}"
    )


def test_without_a_stalled_worker_nothing_is_said():
    assert stall_in("Epoch[0] mxjob: stalled for 300 s") == ""
    assert stall_text(stalled_workers({"worker-0": "", "worker-1": stall_in("mxjob: stalled for somebody else")})) == ""


def test_of_a_stalled_gang_the_place_of_each_worker_is_known():
    stalls = {"worker-0": WAITS, "worker-1": SLEEPS, "worker-2": ""}
    assert [structs.asdict(each) for each in stalled_workers(stalls)] == [
        {"name": "worker-0", "seconds": 301, "place": "/x/train.py:11", "function": "wait_to_read", "in_mxnet": True},
        {"name": "worker-1", "seconds": 300, "place": "/a b/train.py:16", "function": "<module>", "in_mxnet": False},
        {"name": "worker-2", "seconds": 0, "place": "", "function": "", "in_mxnet": False},
    ]
    assert stalled_workers({"worker-0": "", "worker-1": ""}) == ()


def test_a_slow_worker_is_named_with_its_node_and_its_share():
    speeds = {"worker-0": 100.0, "worker-1": 69.0, "worker-2": 70.0, "worker-3": 130.0}
    slow = slow_workers(speeds, {"worker-1": "gpu-7"})
    assert slow == (SlowWorker(name="worker-1", node="gpu-7", percent=69),)
    assert slow_text(slow) == "Below 70 % of the workers' median speed: worker-1 on node gpu-7 (69 %)."
    assert slow_text(slow_workers({"worker-0": 185.0, "worker-1": 1400.0}, {})).endswith("worker-0 on node ? (13 %).")


@pytest.mark.parametrize("speeds", [{}, {"worker-0": 5.0}, {"worker-0": 70.0, "worker-1": 100.0}])
def test_workers_that_are_about_as_fast_are_not_slow(speeds):
    assert slow_text(slow_workers(speeds, {})) == ""
