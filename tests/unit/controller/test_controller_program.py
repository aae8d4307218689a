"""The program `mxnet-operator`: run against an API server until a signal, and print the CRD."""

import asyncio
import json
import os
import signal
import sys

import pytest
import yaml
from controller_fixtures import gang, world

from mxnet_operator.api.crd import custom_resource_definition

PROGRAM = [sys.executable, "-m", "mxnet_operator.cli.mxnet_operator"]


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
    async with world(tmp_path, start=False) as w:
        program = await start("run", "--log-format", "json", KUBECONFIG=str(w.kubeconfig))
        await w.submit(gang())
        await w.pods(5)
        program.send_signal(number)
        async with asyncio.timeout(30):
            out, err = await program.communicate()
        assert program.returncode == 0, err.decode()
        assert out == b""
        lines = [json.loads(line) for line in err.decode().splitlines()]
        assert lines
        assert not [line for line in lines if line["level"] in {"warning", "error"}]


async def test_without_a_kubeconfig_it_says_how_to_name_one(tmp_path):
    program = await start("run", KUBECONFIG=str(tmp_path / "none"))
    async with asyncio.timeout(30):
        _, err = await program.communicate()
    assert program.returncode == 3
    assert "--kubeconfig" in err.decode()


async def test_the_crd_is_printed_as_yaml():
    program = await start("crd")
    async with asyncio.timeout(30):
        out, _ = await program.communicate()
    assert yaml.safe_load(out) == custom_resource_definition()
