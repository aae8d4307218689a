"""A CRD that is older than the controller, under which the server drops what decisions rest on: the job says so."""

import copy

import pytest
from builders import make_mxjob
from controller_fixtures import JOBS, submitted, world
from waiting import until

from mxnet_operator.api.crd import custom_resource_definition
from mxnet_operator.client.resources import MXJOBS
from mxnet_operator.controller.health import Health
from mxnet_operator.controller.status_writer import OutdatedCRDError, StatusWriter
from mxnet_operator.kube.errors import ApiError

OF_1_8_1 = frozenset({"conditions", "replicaStatuses", "startTime", "completionTime", "lastReconcileTime"})
REMEDY = "kubectl apply --server-side --force-conflicts -f"


def crd_with(keeps):
    """Our CRD with those fields of the status for which `keeps` holds."""
    crd = copy.deepcopy(custom_resource_definition())
    for version in crd["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        status["properties"] = {name: field for name, field in status["properties"].items() if keeps(name)}
        version.pop("selectableFields", None)
    return crd


async def test_a_job_under_the_crd_of_1_8_1_says_what_is_missing_and_readiness_does(tmp_path):
    async with world(tmp_path, crds=[crd_with(OF_1_8_1.__contains__)]) as w:
        await w.submit(submitted(make_mxjob("digits").gang(1, 1).restart("OnFailure")))
        event = await w.event("ReconcileError")
        assert "mxjobs.kubeflow.org is older than this controller" in event["message"]
        assert "status.state" in event["message"]
        assert REMEDY in event["message"]
        jobs = await w.eventually(JOBS, lambda jobs: condition(jobs["digits"]))
        assert condition(jobs["digits"]) == ("True", "CRDOutdated", event["message"])
        assert REMEDY in await Health(w.controller, w.client).readiness()
        assert await Health(w.controller, w.client).liveness() == ""


async def test_a_suspension_that_can_not_be_recorded_changes_nothing_and_is_tried_again(tmp_path):
    """As under the CRD of an earlier release, which lacks only the newest fields."""
    async with world(tmp_path, crds=[crd_with(lambda name: name != "firstAttempt")]) as w:
        await w.submit(submitted(make_mxjob("digits").gang(1, 1)))
        await w.move(await w.pods(3), "Running")
        await w.state("digits", "Running")
        (await w.api.merge(f"{JOBS}/digits", {"spec": {"runPolicy": {"suspend": True}}})).ok()
        jobs = await w.eventually(JOBS, lambda jobs: condition(jobs["digits"]))
        assert "lacks status.firstAttempt:" in condition(jobs["digits"])[2]
        w.writes.clear()
        await until(lambda: len(w.writes) >= 2)
        again = (await w.api.get(f"{JOBS}/digits")).ok()
        assert again["metadata"]["resourceVersion"] == jobs["digits"]["metadata"]["resourceVersion"]
        assert again["status"]["restarts"] == 0
        assert not any("deletionTimestamp" in pod["metadata"] for pod in (await w.pods(3)).values())


def condition(job):
    found = (c for c in job.get("status", {}).get("conditions", ()) if c["type"] == "ReconcileError")
    return next(((c["status"], c["reason"], c["message"]) for c in found), None)


class Server:
    """A server that knows some fields of a status, and answers a patch as kube-apiserver does."""

    def __init__(self, *fields):
        self.fields, self.stored, self.requests = fields, [], 0

    async def patch_as(self, path, body, as_a, params=None):
        self.requests += 1
        unknown = [f'unknown field "status.{field}"' for field in body["status"] if field not in self.fields]
        if unknown and params == {"fieldValidation": "Strict"}:
            why = f'patch: Invalid value: "{{...}}": strict decoding error: {", ".join(unknown)}'
            raise ApiError(422, "Invalid", f'MXJob.kubeflow.org "" is invalid: {why}')
        self.stored.append(body)
        return body


@pytest.mark.parametrize(
    ("status", "unknown"),
    [
        ({"restarts": 1, "conditions": []}, "status.restarts:"),
        ({"state": "Running", "restarts": 1}, "status.restarts, status.state:"),
        ({"form": "v1beta1"}, "status.form:"),
        ({"ready": "1/2", "duration": "1s", "result": "0.9"}, ""),
        ({"conditions": []}, ""),
    ],
)
async def test_what_decisions_rest_on_is_stored_as_a_whole_or_not_at_all(status, unknown):
    statuses, server = StatusWriter(), Server("conditions")
    if not unknown:
        await statuses.patch(server, MXJOBS, "/status", {"status": status})
        assert (len(server.stored), statuses.trouble()) == (1, "")
        return
    with pytest.raises(OutdatedCRDError, match=f"lacks {unknown}"):
        await statuses.patch(server, MXJOBS, "/status", {"status": status})
    assert server.stored == []
    assert f"lacks {unknown}" in statuses.trouble()


async def test_fields_that_only_inform_are_left_out_under_an_old_crd_which_is_said_once(caplog):
    """A write was doubled for each of them, and nothing said what was dropped."""
    now = [0.0]
    statuses, server = StatusWriter(lambda: now[0]), Server("conditions", "ready")

    async def write():
        before = server.requests
        body = {"status": {"conditions": [], "ready": "1/1", "training": {"epoch": server.requests}}}
        await statuses.patch(server, MXJOBS, "/status", body)
        return server.requests - before

    assert [await write() for _ in range(3)] == [2, 1, 1]
    assert [body["status"].keys() for body in server.stored] == [{"conditions", "ready"}] * 3
    (said,) = [each.getMessage() for each in caplog.records]
    assert "lacks status.training: jobs run without these until this release's is applied" in said
    assert REMEDY in said
    assert statuses.trouble() == ""

    now[0] += 600
    assert [await write() for _ in range(2)] == [2, 1]
    now[0] += 600
    server.fields = ("conditions", "ready", "training")  # The CRD was replaced.
    assert [await write() for _ in range(2)] == [1, 1]
    assert server.stored[-1]["status"]["training"]
    assert len(caplog.records) == 1


async def test_a_crd_that_was_replaced_is_trusted_again():
    statuses = StatusWriter()
    with pytest.raises(OutdatedCRDError):
        await statuses.patch(Server(), MXJOBS, "/status", {"status": {"restarts": 1}})
    await statuses.patch(Server("restarts"), MXJOBS, "/status", {"status": {"restarts": 1}})
    assert statuses.trouble() == ""


async def test_another_rejection_says_nothing_of_the_crd():
    class Rejecting:
        async def patch_as(self, *_):
            raise ApiError(422, "Invalid", 'spec.jobMode: Invalid value: "unknown field \\"status.restarts\\""')

    statuses = StatusWriter()
    with pytest.raises(ApiError, match="jobMode"):
        await statuses.patch(Rejecting(), MXJOBS, "/status", {"status": {"restarts": 1}})
    assert statuses.trouble() == ""


async def test_a_job_that_met_an_old_crd_and_is_deleted_keeps_nobody_unready(tmp_path):
    async with world(tmp_path, crds=[crd_with(OF_1_8_1.__contains__)]) as w:
        await w.submit(submitted(make_mxjob("digits").gang(1, 1)))
        await w.event("ReconcileError")
        assert w.controller.statuses.trouble()
        (await w.api.delete(f"{JOBS}/digits")).ok()
        await until(lambda: not w.controller.statuses.trouble())
        assert await Health(w.controller, w.client).readiness() == ""
