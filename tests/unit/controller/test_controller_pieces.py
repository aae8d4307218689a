"""The controller's small pieces: projections, merge patches, own writes, Events' messages and log lines."""

import json
import logging
from datetime import UTC, datetime

import msgspec
import pytest
from builders import make_mxjob

from mxnet_operator.controller.events import EventRecorder
from mxnet_operator.controller.expectations import OwnWrites
from mxnet_operator.controller.log_format import JsonFormatter, TextFormatter
from mxnet_operator.controller.merge_patch import merge_patch
from mxnet_operator.controller.projection import project_pod, project_service
from mxnet_operator.kube.cache import Indexer
from mxnet_operator.kube.errors import WriteFencedError
from mxnet_operator.kube.resources import PODS
from mxnet_operator.plan import PodView, ServiceView
from mxnet_operator.plan.actions import Event

OWNER = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "digits", "uid": "job-uid", "controller": True}
LABELS = {
    "training.kubeflow.org/operator-name": "mxjob-controller",
    "training.kubeflow.org/replica-type": "tunerserver",
    "training.kubeflow.org/replica-index": "3",
    "mxjob.kubeflow.org/attempt": "2",
}


def raw(obj):
    return msgspec.Raw(json.dumps(obj).encode())


def pod(labels=LABELS, owner=OWNER, spec=None, **status):
    metadata = {"name": "p", "namespace": "ns", "uid": "pod-uid", "labels": labels, "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": spec or {}, "status": status}


def ended(name, **state):
    return {"name": name, "state": {"terminated": state}}


def test_a_pod_is_projected_to_what_plans_read():
    started, finished = "2026-11-21T12:00:00Z", "2026-11-21T12:00:05Z"
    statuses = [
        ended("sidecar", exitCode=9),
        ended("mxnet", exitCode=3, reason="Error", message="boom", startedAt=started, finishedAt=finished),
    ]
    spec = {"nodeName": "n1", "activeDeadlineSeconds": 1, "containers": [{"name": "ignored"}]}
    child = project_pod(raw(pod(spec=spec, phase="Failed", reason="Evicted", message="m", containerStatuses=statuses)))
    assert child.job == "mxjobs.kubeflow.org/ns/digits"
    assert child.view == PodView(
        name="p",
        uid="pod-uid",
        owner_uid="job-uid",
        type="TunerServer",
        index=3,
        attempt=2,
        phase="Failed",
        stop_requested=True,
        node_name="n1",
        exit_code=3,
        reason="Error",
        message="boom",
        pod_reason="Evicted",
        pod_message="m",
        reported=True,
        started_at=datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC),
        finished_at=datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    "stranger",
    [
        pod(owner=OWNER | {"controller": False}),
        pod(owner=OWNER | {"kind": "TFJob"}),
        pod(labels=LABELS | {"training.kubeflow.org/replica-type": "chief"}),
        pod(labels=LABELS | {"training.kubeflow.org/replica-index": "x"}),
        {"metadata": {"name": "p", "namespace": "ns"}},
    ],
)
def test_pods_that_no_job_of_ours_controls_are_not_kept(stranger):
    assert project_pod(raw(stranger)) is None


def test_a_service_is_projected_with_its_owner():
    metadata = {"name": "s", "namespace": "ns", "uid": "u", "ownerReferences": [OWNER]}
    gone = metadata | {"deletionTimestamp": "2026-11-21T12:00:00Z"}
    child = project_service(raw({"metadata": gone, "spec": {}}))
    assert (child.job, child.view) == (
        "mxjobs.kubeflow.org/ns/digits",
        ServiceView(name="s", uid="u", owner_uid="job-uid", deleting=True),
    )
    assert project_service(raw({"metadata": {"name": "s"}})) is None


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
        ({"a": 1, "b": 2}, {"b": 2}, {"a": None}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}, {"a": {"y": None}}),
        ({"a": {"x": 1}}, {"a": {}}, {"a": {"x": None}}),
        ({}, {"a": {}}, {"a": {}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": {"x": 1}}, {"a": {"x": 1}}),
    ],
)
def test_a_merge_patch_says_only_what_differs(old, new, patch):
    assert merge_patch(old, new) == patch


def test_a_write_is_unseen_until_the_cache_has_come_as_far():
    cache = Indexer()
    writes = OwnWrites({PODS: cache})
    writes.record("a", PODS, "7")
    writes.record("a", PODS, "9")
    writes.record("a", PODS, "8")
    assert writes.unseen("b") == ""
    cache.advance("8")
    assert writes.unseen("a") == "pods at version 9"
    cache.advance("9")
    assert writes.unseen("a") == ""


def record(**extra):
    made = logging.LogRecord("mxnet_operator.x", logging.INFO, __file__, 1, "made %d pods", (5,), None)
    made.__dict__.update(extra)
    return made


def test_a_json_log_line_has_the_job_as_a_field():
    line = json.loads(JsonFormatter().format(record(job="ns/digits", uid="u")))
    assert {key: line[key] for key in ("level", "message", "job", "uid")} == {
        "level": "info",
        "message": "made 5 pods",
        "job": "ns/digits",
        "uid": "u",
    }


def test_a_text_log_line_names_the_job_first():
    assert TextFormatter().format(record(job="ns/digits")).endswith("INFO ns/digits: made 5 pods")
    assert TextFormatter().format(record()).endswith("INFO made 5 pods")


async def test_an_event_that_comes_too_late_for_the_term_of_leadership_is_no_warning(caplog):
    class Fenced:
        async def create(self, path, body):
            raise WriteFencedError(f"POST {path} was not sent: the lease is lost")

    with pytest.raises(WriteFencedError):
        await EventRecorder(Fenced()).record(make_mxjob().obj().metadata, Event("Normal", "Any", "any"))
    assert [each for each in caplog.records if each.levelname == "WARNING"] == []
