"""Whatever a replica writes, Airflow and its PostgreSQL store what the provider makes of it."""

import json
from contextlib import closing

import msgspec
import pytest
from airflow.sdk.serde import deserialize, serialize
from fresh_seeds import drawn
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from mxnet_operator.api import names
from mxnet_operator.api.storable import storable
from mxnet_operator.readers.log_lines import LineSplitter, LogCursor
from mxnet_provider.job import event, replicas
from mxnet_provider.job.event import Event
from mxnet_provider.job.metrics import Metrics
from mxnet_provider.job.sensor_state import settled
from mxnet_provider.job.summary import summary

ODD_TEXTS = ["\0", "a\0b", "\ud800", "\udfff\ud800", "\N{PILE OF POO}", "\ufeff{}", "x" * 40_000]
ODD_KEYS = ["__classname__", "__id__", "__type", "__var", "__data__", "__version__", "___x", "", "a", "a"]
TEXTS = st.text() | st.sampled_from(ODD_TEXTS) | st.text(st.characters(categories=["Cs", "Cc", "Lu"]))
NUMBERS = st.floats() | st.integers() | st.sampled_from([2**63, -(2**63), 2.0**63 - 1024, 10**400, 5e-324, 1e20])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(ODD_KEYS) | TEXTS, inner),
)
ODD_JSON = [
    '{"loss": NaN}',
    '{"loss": -Infinity, "best": 1e999}',
    r'"\u0000"',
    r'{"\u0000": "\ud800"}',
    '{"a": 1, "a": NaN}',
    "[" * 4000,
    "[" * 500 + "]" * 500,
    '{"a":' * 40 + "NaN" + "}" * 40,
    "9" * 4096,
    '{"__classname__": "os.system", "__version__": 1, "__data__": "true"}',
    '{"__type": "dict", "__var": 1}',
]
MESSAGES = st.binary().map(lambda raw: raw.decode("utf-8", "replace")) | TEXTS | st.sampled_from(ODD_JSON)
MESSAGES |= VALUES.map(json.dumps)
FIGURES = st.sampled_from(["nan", "-nan", "inf", "-inf", "1e400", "1e20", "0.5", "infinity", "1_0"])
LINES = st.binary() | st.builds(
    "INFO:root:Epoch[{}] {}={}".format,
    st.integers(0, 10**9),
    st.sampled_from(["Train-accuracy", "x" * 200, "a\0b"]),
    FIGURES,
).map(str.encode)


@pytest.fixture(scope="module")
def stored(postgres):
    """What is left of a value on its way through Airflow: its serialization, its parts' protocol, its database."""
    with closing(postgres.create().connect()) as connection, connection.cursor() as cursor:

        def through(value):
            sent = msgspec.msgpack.decode(msgspec.msgpack.encode(serialize(value)))
            cursor.execute("select %s::jsonb", [json.dumps(sent, allow_nan=False)])
            back = deserialize(cursor.fetchone()[0])
            msgspec.msgpack.encode(back)  # on its way to the next task
            assert _as_floats(back) == _as_floats(value)
            return back

        yield through


def _as_floats(value):
    """With every number as a float: `jsonb` makes integers of large floats, whose last digits a float doesn't have."""
    return json.loads(json.dumps(value), parse_int=float)


def pod(message):
    labels = {names.LABEL_REPLICA_TYPE: "worker", names.LABEL_REPLICA_INDEX: "0"}
    terminated = {"terminated": {"exitCode": 1, "reason": message[:100], "message": message}}
    return {
        "metadata": {"name": "digits-worker-0", "labels": labels},
        "status": {"containerStatuses": [{"name": "mxnet", "state": terminated}]},
    }


def job(state, message, result):
    condition = {"type": state, "status": "True", "message": message, "reason": message[:100]}
    metadata = {"name": "digits", "namespace": "default", "uid": "1", "creationTimestamp": "2026-11-21T12:00:00Z"}
    return {"metadata": metadata, "status": {"conditions": [condition], "result": result}}


TRIES = settings(max_examples=drawn(200, 40), suppress_health_check=list(HealthCheck), print_blob=True)


@TRIES
@given(
    state=st.sampled_from(["Succeeded", "Failed"]),
    message=MESSAGES,
    result=MESSAGES,
    log=st.lists(LINES).map(b"\n".join),
)
@example("Succeeded", "", '{"loss": NaN}', b"Epoch[0] Train-accuracy=nan")
@example("Failed", "", "", b"Epoch[1] Train-accuracy=nan\nEpoch[1] Train-accuracy=0.5\nEpoch[1] Train-accuracy=nan")
@example("Failed", "its last lines: \0", r'"\u0000"', b"\0")
@example("Failed", "x" * 10**6, "[" * 4000, b"x" * 10**6)
def test_what_a_replica_writes_is_stored_as_event_result_and_metrics(stored, state, message, result, log):
    warnings = []
    metrics, cursor = Metrics({"dag_id": "d", "task_id": "t"}, warnings.append), LogCursor()
    for line in LineSplitter().feed(log + b"\n"):
        metrics.read(cursor.take(line))
    found, pods = job(state, message, result), [pod(message)]
    sent = Event(
        status="failed",
        name="digits",
        namespace="default",
        uid="1",
        message=message,
        failed_replicas=replicas.failures(pods),
        summary=summary(found, pods),
        metrics=metrics.history(),
    ).payload()
    note(f"{sent!r}")
    received = event.read(stored(sent))
    assert (received.message, received.metrics) == (sent["message"], sent["metrics"])
    stored(received.payload())  # in the task state store, and as the task's return value
    stored(storable(metrics.history()))
    lost = [name for name, course in sent["metrics"].items() if any(value is None for _, value in course)]
    assert len(warnings) == len(set(warnings))
    assert len(warnings) >= len(lost)
    decision = settled(found, target_states=["Running"], fail_states=[state], missing_ok=False)
    stored(decision.payload())


@TRIES
@given(VALUES)
def test_what_is_storable_is_stored_unchanged_and_stays_so(stored, value):
    made = storable(value)
    assert storable(made) == made
    stored(made)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ('{"accuracy": 0.9, "epochs": 20}', {"accuracy": 0.9, "epochs": 20}),
        ('{"loss": NaN, "best": [1, Infinity]}', {"loss": None, "best": [1, None]}),
        (r'{"a\u0000": "\u0000\ud800!"}', {"a\ufffd": "\ufffd\ufffd!"}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("9" * 18, 10**18 - 1),
        ("[9223372036854775807, 9223372036854775808, -1e30]", [2**63 - 1, None, None]),
        ("9" * 400, None),
        ("9" * 5000, "9" * 5000),  # Python reads no such integer
        ("[" * 4000, "[" * 4000),
        ("[" * 33 + "]" * 33, "[" * 33 + "]" * 33),
        ('{"__classname__": "x"}', {"_classname__": "x"}),
        ("plain words", "plain words"),
    ],
)
def test_a_result_is_kept_as_far_as_json_goes(stored, said, kept):
    found = summary(job("Succeeded", "", said), [])
    assert stored(storable(found))["result"] == kept


def test_a_long_text_says_how_much_of_it_is_left_out():
    text = storable("x" * 100_000)
    assert len(text) == 32 * 1024
    assert text.endswith("xxx... (67232 more characters)")
