"""The real kubectl against the local API server."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from apiserver_objects import (
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    PODS,
    event,
    mxjob,
    pod,
)
from log_sources import ScriptedLogs
from waiting import SECONDS


async def set_state(api, name, state):
    (await api.merge(f"{JOBS.format('default')}/{name}/status", {"status": {"state": state}})).ok()


async def line_of(process):
    async with asyncio.timeout(SECONDS):
        return (await process.stdout.readline()).decode()


async def stop(process):
    process.terminate()
    await process.wait()


async def test_get_prints_the_columns_of_the_definition(api, kubectl):
    assert "No resources found" in (await kubectl.run("get", "mxjobs"))[2]
    (await api.post(JOBS.format("default"), mxjob("j1"))).ok()
    await set_state(api, "j1", "Running")
    header, row = (await kubectl.ok("get", "mxjobs")).splitlines()
    assert header.split() == ["NAME", "STATE", "READY", "RESTARTS", "DURATION", "AGE"]
    assert row.split()[:2] == ["j1", "Running"]
    header, row = (await kubectl.ok("get", "mxjob", "j1", "-o", "wide", "--show-labels")).splitlines()
    wide = ["NAME", "STATE", "READY", "RESTARTS", "DURATION", "AGE", "STARTED", "EPOCH", "PERCENT", "FORM", "LABELS"]
    assert header.split() == wide


async def test_a_node_is_cordoned_drained_and_given_back(api, kubectl):
    """Evictions aren't served, so kubectl deletes the pods: with DeleteOptions in protobuf."""
    (await api.post("/api/v1/nodes", {"metadata": {"name": "n1"}})).ok()
    (await api.post(PODS.format("default"), pod("a", node="n1"))).ok()
    await kubectl.ok("drain", "n1", "--force", "--grace-period=0", f"--timeout={SECONDS}s")
    assert (await api.get(f"{PODS.format('default')}/a")).code == 404
    assert (await api.get("/api/v1/nodes/n1")).ok()["spec"]["unschedulable"] is True
    await kubectl.ok("uncordon", "n1")
    assert not (await api.get("/api/v1/nodes/n1")).ok()["spec"].get("unschedulable")


async def test_a_watch_follows_the_state(api, kubectl):
    (await api.post(JOBS.format("default"), mxjob("j1"))).ok()
    process = await kubectl.start("get", "mxjobs", "-w", "--no-headers")
    try:
        assert (await line_of(process)).split()[0] == "j1"
        await set_state(api, "j1", "Running")
        assert (await line_of(process)).split()[:2] == ["j1", "Running"]
        await set_state(api, "j1", "Succeeded")
        assert (await line_of(process)).split()[:2] == ["j1", "Succeeded"]
    finally:
        await stop(process)


async def test_create_and_apply(kubectl):
    job = mxjob("j1")
    assert await kubectl.ok("create", "-f", "-", stdin=job) == "mxjob.kubeflow.org/j1 created\n"
    assert "already exists" in await kubectl.refused("create", "-f", "-", stdin=job)
    for name, manifest in (("mxjob.kubeflow.org/j2", mxjob("j2")), ("pod/p", pod("p"))):
        assert await kubectl.ok("apply", "-f", "-", stdin=manifest) == f"{name} created\n"
        assert await kubectl.ok("apply", "-f", "-", stdin=manifest) == f"{name} unchanged\n"
        manifest["metadata"]["labels"] = {"changed": "yes"}
        assert await kubectl.ok("apply", "-f", "-", stdin=manifest) == f"{name} configured\n"
        assert await kubectl.ok("get", name, "-o", "jsonpath={.metadata.labels.changed}") == "yes"
        del manifest["metadata"]["labels"]
        assert await kubectl.ok("apply", "-f", "-", stdin=manifest) == f"{name} configured\n"
        assert await kubectl.ok("get", name, "-o", "jsonpath={.metadata.labels}") == ""
    assert "dry run" in await kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=mxjob("j9"))


async def test_a_malformed_manifest_is_refused_with_its_path(kubectl):
    misspelt = mxjob("j1")
    misspelt["spec"]["jobmode"] = "MXTrain"
    assert 'unknown field "spec.jobmode"' in await kubectl.refused("apply", "-f", "-", stdin=misspelt)
    missing = mxjob("j1")
    del missing["spec"]["mxReplicaSpecs"]
    error = await kubectl.refused("create", "-f", "-", stdin=missing)
    assert "spec.mxReplicaSpecs: Required value" in error
    wrong = mxjob("j1", replicas="two")
    assert "spec.mxReplicaSpecs.Worker.replicas" in await kubectl.refused("create", "-f", "-", stdin=wrong)
    nameless = pod("p", containers=[{"image": "x"}])
    assert "spec.containers[0].name: Required value" in await kubectl.refused("create", "-f", "-", stdin=nameless)
    assert "No resources found" in (await kubectl.run("get", "mxjobs,pods"))[2]


async def test_delete_waits_for_the_pod_to_be_gone(api, kubectl):
    path = f"{PODS.format('default')}/p"
    (await api.post(PODS.format("default"), pod("p", node="n"))).ok()
    process = await kubectl.start("delete", "pod", "p")
    assert "deleted" in await line_of(process)
    async with api.watch(PODS.format("default"), fieldSelector="metadata.name=p") as stream:
        while "deletionTimestamp" not in (await stream.next())["object"]["metadata"]:
            pass
    assert process.returncode is None
    (await api.delete(path, {"gracePeriodSeconds": 0})).ok()
    async with asyncio.timeout(SECONDS):
        assert await process.wait() == 0


async def test_wait_for_a_state(api, kubectl):
    (await api.post(JOBS.format("default"), mxjob("j1"))).ok()
    waiting = await kubectl.start(
        "wait", "--for=jsonpath={.status.state}=Succeeded", "mxjob/j1", f"--timeout={SECONDS}s"
    )
    for state in ("Created", "Running", "Succeeded"):
        await set_state(api, "j1", state)
    assert await line_of(waiting) == "mxjob.kubeflow.org/j1 condition met\n"
    assert await waiting.wait() == 0
    gone = await kubectl.start("wait", "--for=delete", "mxjob/j1", f"--timeout={SECONDS}s")
    (await api.delete(f"{JOBS.format('default')}/j1")).ok()
    async with asyncio.timeout(SECONDS):
        assert await gone.wait() == 0


@pytest.mark.exhaustive
async def test_describe_shows_the_events(api, kubectl):
    job = (await api.post(JOBS.format("default"), mxjob("j1"))).ok()
    made = (await api.post(PODS.format("default"), pod("p1"))).ok()
    (await api.post(EVENTS.format("default"), event("e1", job, message="the job happened"))).ok()
    (await api.post(EVENTS.format("default"), event("e2", made, message="the pod happened"))).ok()
    described = await kubectl.ok("describe", "mxjob", "j1")
    assert "the job happened" in described
    assert "the pod happened" not in described
    assert "the pod happened" in await kubectl.ok("describe", "pod", "p1")
    listed = (await kubectl.ok("get", "events")).splitlines()
    assert listed[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert any("mxjob/j1" in line and "the job happened" in line for line in listed)
    assert "the job happened" in await kubectl.ok("events", "--for", "mxjob/j1")


@pytest.mark.exhaustive
async def test_explain_reads_the_schema(kubectl):
    assert "backoffLimit" in await kubectl.ok("explain", "mxjob.spec.runPolicy")
    assert "MXJobStatus is the observed state of an MXJob." in await kubectl.ok("explain", "mxjob.status")
    older = await kubectl.ok("explain", "mxjob", "--api-version=kubeflow.org/v1beta1")
    assert "--api-version=kubeflow.org/v1" in " ".join(older.split()).replace("--api-version=kubeflow.org/v1beta1", "")


async def test_logs_are_chosen_and_followed_to_their_end(api, kubectl, running):
    logs = running.server.log_source = ScriptedLogs("one", "two", "three")
    (await api.post(PODS.format("default"), pod("p", node="n"))).ok()
    assert await kubectl.ok("logs", "p", "--tail=1", "--since=1h", "--timestamps") == "three\n"
    assert (logs.asked["timestamps"], logs.asked["tail_lines"]) == (True, 1)
    assert timedelta(0) <= datetime.now(UTC) - logs.asked["since"] - timedelta(hours=1) < timedelta(minutes=30)
    assert "not valid for pod p" in await kubectl.refused("logs", "p", "-c", "zz")
    process = await kubectl.start("logs", "-f", "p")
    assert [await line_of(process) for _ in range(3)] == ["one\n", "two\n", "three\n"]
    logs.say("four")
    assert await line_of(process) == "four\n"
    logs.end()
    async with asyncio.timeout(SECONDS):
        assert await process.wait() == 0


@pytest.mark.exhaustive
async def test_what_kubectl_creates_by_words(api, kubectl):
    """It sends these as protobuf."""
    await kubectl.ok("create", "namespace", "team")
    assert (await api.get("/api/v1/namespaces/team")).ok()["status"] == {"phase": "Active"}
    await kubectl.ok("create", "configmap", "settings", "--from-literal=rate=0.1", "--from-literal=none=", "-n", "team")
    stored = (await api.get(f"{CONFIG_MAPS.format('team')}/settings")).ok()
    assert stored["data"] == {"rate": "0.1", "none": ""}
    assert "already exists" in await kubectl.refused("create", "namespace", "team")
    said = await kubectl.refused("create", "service", "clusterip", "web", "--tcp=80")
    assert "accepted media types include: application/json" in said
