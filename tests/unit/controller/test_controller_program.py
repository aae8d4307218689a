"""The program `mxnet-operator`: run against an API server until a signal, and print the CRD."""

import asyncio
import contextlib
import os
import signal

import pytest
import yaml
from api_gateway import gateway_to
from builders import make_mxjob
from controller_fixtures import JOBS, PODS, PROGRAM, gang, running_program, submitted, world
from waiting import SECONDS, until

from mxnet_operator.api.crd import definitions, legacy_definitions
from mxnet_operator.cli.daemons import controller as daemon
from mxnet_operator.cli.server.connection import Target
from mxnet_operator.kube.lease import LeaseTimes


async def start(*arguments, **environment):
    return await asyncio.create_subprocess_exec(
        *PROGRAM,
        *arguments,
        env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_runs_jobs_and_ends_in_order_on_a_signal(tmp_path, number):
    async with world(tmp_path, start=False) as w, running_program(w.running.kubeconfig) as program:
        await w.submit(gang())
        await w.pods(5)
        program.process.send_signal(number)
        assert await program.end() == 0
        assert program.lines
        assert not [line for line in program.lines if line["level"] in {"warning", "error"}]


async def test_an_address_that_is_taken_is_named_with_the_flag_to_choose_another(tmp_path):
    async with world(tmp_path, start=False) as w:
        taken = f"127.0.0.1:{w.running.port}"
        program = await start("run", "--metrics-bind-address", taken, KUBECONFIG=str(w.running.kubeconfig))
        async with asyncio.timeout(SECONDS):
            _, err = await program.communicate()
        assert program.returncode == 1
        assert f"metrics can't be served at {taken}: Address already in use" in err.decode()
        assert "--metrics-bind-address" in err.decode()


async def test_without_leader_election_it_asks_for_no_lease_and_several_namespaces_are_run(tmp_path):
    async with world(tmp_path, start=False) as w:
        for name in ("one", "two", "three"):
            (await w.api.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
        only = ["--no-leader-elect", "--namespace", "one,two"]
        async with running_program(w.running.kubeconfig, *only) as program:
            await program.says("running jobs")
            for name in ("three", "one", "two"):
                job = gang(name)
                job["metadata"]["namespace"] = name
                await w.submit(job, JOBS.replace("default", name))
            for name in ("one", "two"):
                await w.eventually(PODS.replace("default", name), lambda pods: len(pods) == 5)
            assert await w.names(PODS.replace("default", "three")) == []
            assert (await w.api.get("/apis/coordination.k8s.io/v1/leases")).ok()["items"] == []


@pytest.mark.exhaustive
async def test_the_lease_is_renewed_while_every_other_connection_is_taken(tmp_path, monkeypatch):
    """By creations that the server doesn't answer: as many as there are connections, and more that wait for one."""
    taken = 20
    monkeypatch.setattr(daemon, "_CONNECTIONS", taken)
    answered = asyncio.Event()
    async with world(tmp_path, start=False) as w:
        folder = tmp_path / "gateway"
        folder.mkdir()
        with gateway_to(w.running.kubeconfig, folder) as gateway:

            async def hang(asked, forward):
                if asked.method == "POST" and asked.path == PODS:
                    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answered.wait(), loop))

            loop, gateway.handler = asyncio.get_running_loop(), hang
            options = daemon.Options(
                target=Target(str(gateway.kubeconfig), None, None),
                namespaces=(),
                workers=8,
                election=daemon.Election(name="a", namespace="default", times=LeaseTimes(3, 2.0, 0.2)),
                metrics=None,
                health=None,
            )
            running = asyncio.create_task(daemon.run(options))
            try:
                await w.submit(submitted(make_mxjob("large").worker(100)))
                await until(lambda: len([each for each in gateway.writes(PODS) if each.method == "POST"]) >= 8)
                before = len(gateway.writes("/leases"))
                await until(lambda: running.done() or len(gateway.writes("/leases")) >= before + 20)
                assert not running.done()
                lease = (await w.api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/a")).ok()
                assert lease["spec"]["leaseTransitions"] == 0
            finally:
                answered.set()
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running


async def test_without_a_kubeconfig_it_says_how_to_name_one(tmp_path):
    program = await start("run", KUBECONFIG=str(tmp_path / "none"))
    async with asyncio.timeout(SECONDS):
        _, err = await program.communicate()
    assert program.returncode == 3
    assert "--kubeconfig" in err.decode()


@pytest.mark.parametrize(("arguments", "printed"), [((), definitions), (("--legacy",), legacy_definitions)])
async def test_the_crds_are_printed_as_yaml(arguments, printed):
    program = await start("crd", *arguments)
    async with asyncio.timeout(SECONDS):
        out, _ = await program.communicate()
    assert list(yaml.load_all(out, yaml.CSafeLoader)) == printed()
