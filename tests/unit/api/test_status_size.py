"""Whatever is written into a status, it stays small, and its texts keep what matters."""

import msgspec
import pytest
from builders import NOW, make_mxjob, make_pod, observe, plan
from hypothesis import example, given
from hypothesis import strategies as st

from mxnet_operator.api import conditions, replica_types
from mxnet_operator.api.formats import FORMATS
from mxnet_operator.api.job_formats import status_to_wire
from mxnet_operator.api.status_size import LONGEST_MESSAGE, LONGEST_STATUS, shortened, within_bounds
from mxnet_operator.api.types import MAX_REPLICAS, MAX_RESULT, Metric, MXJobStatus, ReplicaStatus, TrainingStatus
from mxnet_operator.plan.actions import DeletePod
from mxnet_operator.plan.failures import MAX_RESTARTING
from mxnet_operator.plan.replicas import format_indexes

TYPES = sorted(
    value
    for name, value in vars(conditions).items()
    if name.isupper() and isinstance(value, str) and "REASON" not in name
)
"""Every condition that a job can have."""
MANY = [each.name for each in replica_types.TYPES.values() if not each.is_root]
"""Replica types of which a job can have more than one."""
shapes = st.dictionaries(st.sampled_from(MANY), st.integers(1, MAX_REPLICAS).map(range))
"""Which replicas are done, of jobs of any accepted size; a list with gaps is as long as it has to be."""
ALL = dict.fromkeys(MANY, range(MAX_REPLICAS))
texts = st.text(max_size=60).flatmap(lambda text: st.integers(0, 3000).map(lambda times: text * times)) | st.binary(
    max_size=3000
).map(lambda data: data.decode("utf-8", "surrogateescape"))


@given(text=texts, limit=st.integers(64, 2000))
def test_a_text_is_valid_within_its_limit_and_keeps_both_ends(text, limit):
    cut = shortened(text, limit)
    data = cut.encode()
    assert len(data) <= limit
    valid = text.encode("utf-8", "replace")
    if len(valid) <= limit:
        assert data == valid
    else:
        head, mark, tail = cut.partition(f" [... {len(valid)} bytes, cut ...] ")
        assert mark
        assert valid.startswith(head.encode())
        assert valid.endswith(tail.encode())
        assert len(head.encode()) + len(tail.encode()) + len(mark) > limit - 7  # at most half a character at either cut
    assert shortened(cut, limit) == cut


@given(
    messages=st.lists(texts, min_size=len(TYPES), max_size=len(TYPES)),
    result=st.text(max_size=MAX_RESULT),
    done=shapes,
)
@example(messages=["\0" * 3000] * len(TYPES), result="\0" * MAX_RESULT, done=ALL)
def test_a_status_is_within_its_limit_and_repeating_it_changes_nothing(messages, result, done):
    current = ()
    for condition_type, message in zip(TYPES, messages, strict=True):
        current = conditions.set_condition(current, condition_type, "Reason" * 5, message, NOW)
    assert all(len(condition.message.encode()) <= LONGEST_MESSAGE for condition in current)
    status = MXJobStatus(
        conditions=current,
        result=result,
        replica_statuses=dict.fromkeys(
            done, ReplicaStatus(active=MAX_REPLICAS, succeeded=MAX_REPLICAS, failed=MAX_REPLICAS)
        ),
        started_replicas=dict.fromkeys(done, MAX_REPLICAS),
        completed_indexes={replica_type: format_indexes(indexes) for replica_type, indexes in done.items()},
        restarting_pods=tuple(f"{number:036d}" for number in range(MAX_RESTARTING)),
        first_attempt=2**31 - 1,
        start_time=NOW,
    )
    bounded = within_bounds(status)
    for job_format in FORMATS:
        wire = status_to_wire(job_format, {"metadata": {"uid": "0" * 36}}, bounded)
        assert len(msgspec.json.encode(wire)) <= LONGEST_STATUS, job_format.name
    assert (bounded.completed_indexes, bounded.restarting_pods) == (status.completed_indexes, status.restarting_pods)
    assert within_bounds(bounded) == bounded
    ended = (conditions.RUNNING, conditions.RESTARTING, conditions.STALLED)  # none is True of an ended job
    told = {condition.type for condition in bounded.conditions}
    for condition_type, message in zip(TYPES, messages, strict=True):
        if condition_type in told:
            again = conditions.set_condition(bounded.conditions, condition_type, "Reason" * 5, message, NOW)
            assert again == bounded.conditions or condition_type in ended


def test_the_stack_of_cpp_gives_way_to_the_words_of_mxnet_s_error():
    stack = "".join(f"\n  [bt] ({number}) libmxnet.so(+0x3c598b8) [0x7f1e4a0598b8]" for number in range(9))
    text = f"Traceback (most recent call last):{' x' * 300}\nMXNetError: Check failed: no such file{stack}\n{'y' * 200}"
    assert shortened(text) == text.replace(stack, "")
    assert shortened(text, len(text)) == text


@pytest.mark.parametrize("replicas", [1, MAX_RESTARTING, MAX_RESTARTING + 1, 500])
def test_of_many_that_failed_so_many_are_replaced_at_a_time_as_a_status_has_room_for(replicas):
    job = make_mxjob("a").worker(replicas).restart("ExitCode").run_policy(restartScope="Replica", backoffLimit=9999)
    job = job.condition("Running").obj()
    pods = [make_pod(job, "Worker", index).failed(137) for index in range(replicas)]
    status = plan(job, observe(job, *pods), NOW).status
    assert len(status.restarting_pods) == min(replicas, MAX_RESTARTING)
    assert status.restarts_count_towards_max == len(status.restarting_pods)
    going = msgspec.structs.replace(job, status=status)
    later = plan(going, observe(job, *pods), NOW).status
    assert later is None or later.restarting_pods == status.restarting_pods  # those have to go first


@pytest.mark.parametrize("replicas", [1, 801, MAX_REPLICAS])
def test_the_status_of_a_suspended_job_names_none_of_its_pods_however_many_it_has(replicas):
    job = make_mxjob("a").worker(replicas).run_policy(suspend=True, restartScope="Replica")
    job = job.condition("Created").condition("Running").obj()
    pods = [make_pod(job, "Worker", index).running() for index in range(replicas)]
    status = plan(job, observe(job, *pods), NOW).status
    assert status.restarting_pods == ()
    assert len(msgspec.json.encode(status)) <= LONGEST_STATUS
    deletions = plan(msgspec.structs.replace(job, status=status), observe(job, *pods), NOW).actions
    assert {action.name for action in deletions if isinstance(action, DeletePod)} == {
        pod.name for pod in observe(job, *pods).pods
    }


def test_a_training_gives_way_to_what_a_job_continues_from():
    metrics = tuple(Metric(name="x" * 64, value="\x00" * 64) for _ in range(100))
    training = TrainingStatus(epoch=3, metrics=metrics, warnings=("\x00" * 1000,))
    status = MXJobStatus(training=training, result="x" * 100)
    found = within_bounds(status)
    assert len(msgspec.json.encode(found)) <= LONGEST_STATUS
    assert (found.training, found.result) == (TrainingStatus(epoch=3), "x" * 100)
    few = MXJobStatus(training=msgspec.structs.replace(training, metrics=metrics[:1]))
    assert within_bounds(few) == few
