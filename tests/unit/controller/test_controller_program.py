"""The program `mxnet-operator`: run against an API server until a signal, and print the CRD."""

import asyncio
import os
import signal

import pytest
import yaml
from controller_fixtures import JOBS, PODS, PROGRAM, gang, running_program, world
from waiting import SECONDS

from mxnet_operator.api.definitions import definitions, legacy_definitions


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
    assert list(yaml.safe_load_all(out)) == printed()
